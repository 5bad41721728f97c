"use strict";
(async () => {
  const spec = JSON.parse(document.getElementById("spec").textContent);
  const place = document.getElementById("sheet"), tools = document.querySelector(".tools");
  const NS = "http://www.w3.org/2000/svg", FONT = 'Helvetica, Arial, sans-serif', LABEL = 20;
  const make = (name, attributes, text) => {
    const made = document.createElementNS(NS, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text !== undefined) made.textContent = text;
    return made;
  };

  // Each panel is drawn separately, then placed in one drawing with its letter.
  const drawn = async ({ figure, width }, least = 0) => {
    const height = figure.layout.height || 450;
    const box = document.createElement("div");
    box.style.cssText = `position:absolute;left:-10000px;width:${width}px`;
    document.body.append(box);
    const gd = await Plotly.newPlot(box, figure.data, { ...figure.layout, width, height }, { staticPlot: true });
    // A legend takes as many lines as it needs: the drawing grows or shrinks to hold it.
    const legend = gd.querySelector(".legend .bg");
    let tall = height;
    if (legend && figure.layout.margin) {
      const missing = Math.ceil(legend.getBoundingClientRect().bottom - gd.getBoundingClientRect().top - height) + 2;
      if (missing > 0) {
        tall = height + missing;
        const change = { height: tall, "margin.b": (figure.layout.margin.b || 0) + missing };
        const own = figure.layout.legend || {};
        if (own.yref === "container") change["legend.y"] = (own.y * height + missing) / tall;
        await Plotly.relayout(gd, change);
      }
    }
    // Beside others, its plot area is as high as theirs; a square keeps its shape.
    const room = gd._fullLayout._size.h, lacking = figure.layout.yaxis?.scaleanchor ? 0 : Math.max(0, least - room);
    if (lacking) {
      const { y: at, yref } = gd.layout.legend || {}, change = { height: tall + lacking };
      if (at !== undefined) change["legend.y"] = yref === "container" ? at * tall / (tall + lacking) : at * room / least;
      tall += lacking;
      await Plotly.relayout(gd, change);
    }
    // Empty space below the lowest text is cut off.
    const edge = gd.getBoundingClientRect().top;
    const written = [...gd.querySelectorAll(".legend .bg, .xtick text, .xtitle, .annotation-text, .crisp.xlines-above")];
    const bottom = Math.max(0, ...written.map((one) => one.getBoundingClientRect().bottom - edge)) + 6;
    const seen = bottom > tall / 2 && bottom < tall ? Math.ceil(bottom) : tall;
    // Top of its plot area; these are aligned within a row.
    const inner = Math.min(...Object.values(gd._fullLayout._plots || {}).map((plot) => plot.yaxis._offset));
    const address = await Plotly.toImage(gd, { format: "svg", width, height: tall });
    Plotly.purge(gd);
    box.remove();
    const text = decodeURIComponent(address.slice(address.indexOf(",") + 1));
    const svg = new DOMParser().parseFromString(text, "image/svg+xml").documentElement;
    svg.setAttribute("viewBox", `0 0 ${width} ${seen}`);
    return { svg, width, height: seen, room, inner: Number.isFinite(inner) ? inner : 0 };
  };

  const panels = [];
  for (const panel of spec.panels) panels.push(await drawn(panel));

  const sheet = make("svg", { xmlns: NS });
  const rows = [];
  let used = 0;
  panels.forEach((panel, at) => {
    if (!used || used + panel.width > spec.width + 1) { rows.push([]); used = 0; }
    rows.at(-1).push({ ...panel, at, letter: spec.letters[at] });
    used += panel.width + spec.gap;
  });
  let y = 0;
  for (const row of rows) {
    const most = Math.max(...row.map((panel) => panel.room));
    for (const panel of row) if (panel.room < most) Object.assign(panel, await drawn(spec.panels[panel.at], most));
    const deepest = Math.max(...row.map((panel) => panel.inner));
    let x = 0, line = 0;
    for (const { svg, width, height, inner, letter } of row) {
      const top = (letter ? LABEL : 0) + deepest - inner;
      if (letter) sheet.append(make("text", { x, y: y + 15, "font-family": FONT, "font-size": 17, "font-weight": "bold", fill: "#000" }, letter));
      for (const [key, value] of Object.entries({ x, y: y + top, width, height })) svg.setAttribute(key, value);
      sheet.append(svg);
      x += width + spec.gap;
      line = Math.max(line, top + height);
    }
    y += line + spec.gap;
  }
  y -= spec.gap;
  if (spec.caption) {
    const size = 12, most = Math.floor(spec.width / (size * 0.52));
    let words = "";
    const put = () => { y += 16; sheet.append(make("text", { x: 0, y, "font-family": FONT, "font-size": size, fill: "#000" }, words)); words = ""; };
    for (const word of spec.caption.split(" ")) {
      if (words && words.length + word.length + 1 > most) put();
      words += (words ? " " : "") + word;
    }
    if (words) put();
    y += 6;
  }
  // Size on paper: 96 pixels are one inch.
  const wide = spec.inches * 96, tall = y * wide / spec.width;
  sheet.setAttribute("viewBox", `0 0 ${spec.width} ${y}`);
  sheet.setAttribute("width", `${(wide / 96).toFixed(3)}in`);
  sheet.setAttribute("height", `${(tall / 96).toFixed(3)}in`);
  sheet.prepend(make("rect", { width: spec.width, height: y, fill: "#fff" }));
  place.replaceChildren(sheet);
  const style = document.createElement("style");
  style.textContent = `@page { size: ${(wide / 96).toFixed(3)}in ${(tall / 96 + 0.01).toFixed(3)}in; margin: 0; }`;
  document.head.append(style);

  const written = () => new Blob([new XMLSerializer().serializeToString(sheet)], { type: "image/svg+xml" });
  // At least 300 dots per inch.
  const painted = async (scale = 4) => {
    const image = new Image();
    image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(await written().text())}`;
    await image.decode();
    const canvas = document.createElement("canvas");
    canvas.width = Math.round(wide * scale);
    canvas.height = Math.round(tall * scale);
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    return new Promise((done) => canvas.toBlob(done, "image/png"));
  };
  const save = (blob, ending) => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = `${spec.name}.${ending}`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
  };
  const button = (label, act) => {
    const made = document.createElement("button");
    made.type = "button";
    made.textContent = label;
    made.addEventListener("click", () => act(made));
    tools.append(made);
  };
  button("SVG", () => save(written(), "svg"));
  button("PNG", async () => save(await painted(), "png"));
  button("Copy figure", async (made) => {
    try {
      await navigator.clipboard.write([new ClipboardItem({ "image/png": painted() })]);
      made.textContent = "Copied";
    } catch {
      // Browsers only let pages with a secure address copy.
      made.textContent = "This browser does not let a page copy; save the PNG";
    }
    setTimeout(() => { made.textContent = "Copy figure"; }, 2500);
  });
  // A preview is as high as its content, which is only known here, and changes with the width.
  const frame = window.frameElement;
  if (frame) {
    const fit = () => {
      const height = `${Math.ceil(document.body.getBoundingClientRect().bottom) + 8}px`;
      frame.style.height = height;
      // Its container was given the previous height, as the basis of a flexible column.
      const holder = frame.parentElement;
      if (holder?.children.length === 1) Object.assign(holder.style, { height, flexBasis: height, minHeight: "0" });
    };
    fit();
    addEventListener("resize", fit);
    // The buttons have the font of the page around, as bytes: the policy of this page lets it load nothing. Figures are drawn without it.
    const around = frame.ownerDocument, view = around.defaultView;
    const family = view.getComputedStyle(frame).fontFamily;
    const rules = [...around.styleSheets].flatMap((one) => { try { return [...one.cssRules]; } catch { return []; } });
    const face = rules.find((one) => one instanceof view.CSSFontFaceRule && one.style.fontStyle !== "italic"
      && family.includes(one.style.fontFamily.replaceAll('"', "")));
    const address = face?.style.src.match(/url\("?([^")]+)/)?.[1];
    if (address) {
      const read = await view.fetch(new URL(address, face.parentStyleSheet.href || around.baseURI)).catch(() => null);
      const font = read?.ok && new FontFace("around", await read.arrayBuffer(), { weight: face.style.fontWeight });
      if (font) document.fonts.add(font);
      tools.style.fontFamily = `around, ${getComputedStyle(tools).fontFamily}`;
      fit();
    }
  }
  document.body.dataset.ready = "1";
})();
