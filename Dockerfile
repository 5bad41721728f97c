# The dashboard for a shared server:  docker build -t calviz . && docker run --rm -p 127.0.0.1:8501:8501 calviz
FROM python:3.11-slim

# No special rights are needed, and only the home folder is written to. Hugging Face Spaces run a container as user 1000.
RUN useradd --create-home --uid 1000 calviz

WORKDIR /opt/calviz
COPY requirements.txt ./
RUN pip install --no-cache-dir --disable-pip-version-check -r requirements.txt
COPY pyproject.toml README.md LICENSE app.py ./
COPY .streamlit .streamlit
COPY pages pages
COPY sample_data sample_data
COPY calviz calviz
RUN pip install --no-cache-dir --disable-pip-version-check --no-deps .

USER calviz
WORKDIR /srv
EXPOSE 8501
HEALTHCHECK --interval=30s --timeout=5s --start-period=30s --retries=3 \
    CMD ["python", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:8501/_stcore/health', timeout=4)"]

# Listen on all addresses inside the container; `docker run -p` decides which are reachable from outside.
CMD ["calviz", "app", "--host", "0.0.0.0", "--port", "8501", "--no-browser"]
