# The dashboard for a shared server:  docker build -t calviz . && docker run --rm -p 127.0.0.1:8501:8501 calviz
# The newest digest:  docker buildx imagetools inspect python:3.11-slim-trixie
FROM python:3.11.16-slim-trixie@sha256:be1575ed968de893bd54f4c56315ff7c4736ce522c1bca08fd521731aafc0d76

# No special rights are needed, and only the home folder is written to. Hugging Face Spaces run a container as user 1000.
RUN useradd --create-home --uid 1000 calviz

WORKDIR /opt/calviz
COPY requirements.lock ./
RUN pip install --no-cache-dir --disable-pip-version-check --only-binary :all: --require-hashes -r requirements.lock
COPY pyproject.toml README.md LICENSE app.py ./
COPY .streamlit .streamlit
COPY pages pages
COPY sample_data sample_data
COPY calviz calviz
# Built by the backend of the lock.
RUN pip install --no-cache-dir --disable-pip-version-check --no-build-isolation --no-deps .

USER calviz
WORKDIR /srv
EXPOSE 8501
HEALTHCHECK --interval=30s --timeout=5s --start-period=30s --retries=3 \
    CMD ["python", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:8501/_stcore/health', timeout=4)"]

# Listen on all addresses inside the container; `docker run -p` decides which are reachable from outside.
CMD ["calviz", "app", "--host", "0.0.0.0", "--port", "8501", "--no-browser"]
