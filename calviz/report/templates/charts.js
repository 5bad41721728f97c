"use strict";
(() => {
  const LINE = 19;
  const config = {
    displaylogo: false, showSendToCloud: false, responsive: true, displayModeBar: false,
    scrollZoom: false, doubleClick: false,
  };

  // A saved picture may include caption lines with its origin, above the drawing.
  const captioned = (figure, lines, width) => {
    const layout = structuredClone(figure.layout);
    layout.width = width;
    if (!lines.length) return { data: figure.data, layout };
    const top = (layout.margin && layout.margin.t) || 0;
    const high = LINE * lines.length + 8;
    const escape = (text) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;").replace(/\$/g, "&#36;");
    const [first, ...rest] = lines.map(escape);
    layout.height += high;
    layout.margin.t = top + high;
    layout.annotations = [...(layout.annotations || []), {
      xref: "paper", yref: "paper", x: 0, y: 1, yshift: top + 4,
      xanchor: "left", yanchor: "bottom", align: "left", showarrow: false,
      text: [`<b>${first}</b>`, ...rest].join("<br>"), font: { size: 12, color: "#1f2430" },
    }];
    return { data: figure.data, layout };
  };

  // A legend takes as many lines as it needs: the plot area keeps its size, and the drawing grows.
  const fit = (chart) => {
    const legend = chart.querySelector(".legend .bg"), { layout } = chart;
    if (!legend || !layout.height || !layout.margin) return;
    const missing = Math.ceil(legend.getBoundingClientRect().bottom - chart.getBoundingClientRect().top - layout.height);
    if (missing <= 0) return;
    const change = { height: layout.height + missing, "margin.b": (layout.margin.b || 0) + missing };
    if (layout.legend.yref === "container") change["legend.y"] = (layout.legend.y * layout.height + missing) / change.height;
    Plotly.relayout(chart, change);
  };

  // The title of a narrow plot, and what stands in it, may be wider than the plot: it moves to the left until it is whole.
  const keepInside = (chart) => {
    const { right } = chart.getBoundingClientRect();
    for (const words of chart.querySelectorAll(".xtitle, .annotation-text-g")) {
      words.style.translate = "";
      const beyond = words.getBoundingClientRect().right - right;
      if (beyond > 0) words.style.translate = `${-Math.ceil(beyond)}px`;
    }
  };

  // Panels side by side, and rows with long names or numbers beside them, have a minimum width, and scroll on a phone.
  const beside = (layout) => layout.margin.l + layout.margin.r > 220 || Object.entries(layout).some(([name, axis]) => /^xaxis\d+$/.test(name) && axis.domain && axis.domain[0] > 0.05);

  const tools = (chart, spec) => {
    const bar = document.createElement("div");
    bar.className = "tools";
    const label = document.createElement("label");
    const box = document.createElement("input");
    box.type = "checkbox";
    box.checked = true;
    label.append(box, "with a caption");
    const words = document.createElement("span");
    words.textContent = "Save the picture as";
    bar.append(words);
    for (const format of ["png", "svg"]) {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = format.toUpperCase();
      button.addEventListener("click", () => {
        const picture = captioned(spec.figure, box.checked ? spec.caption : [], chart.clientWidth);
        Plotly.downloadImage(picture, {
          format, filename: chart.dataset.name, scale: format === "png" ? 4 : 1,
          width: chart.clientWidth, height: picture.layout.height,
        });
      });
      bar.append(button);
    }
    bar.append(label);
    chart.parentElement.after(bar);
  };

  for (const chart of document.querySelectorAll(".chart")) {
    const spec = JSON.parse(chart.closest("figure").querySelector("script").textContent);
    chart.replaceChildren();
    if (beside(spec.figure.layout)) chart.classList.add("panels");
    Plotly.newPlot(chart, spec.figure.data, structuredClone(spec.figure.layout), config).then(fit).then(() => keepInside(chart));
    chart.on("plotly_afterplot", () => keepInside(chart));
    chart.on("plotly_relayout", (change) => { if (change.autosize) fit(chart); });
    tools(chart, spec);
  }
})();
