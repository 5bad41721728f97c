export default function ({ parentElement, data }) {
  const dialog = parentElement.querySelector("dialog"), status = parentElement.querySelector(".status");
  const list = parentElement.querySelector("dl");
  // Another file may have other tabs.
  list.replaceChildren(...[...data.pages.map((p) => [`g ${p.key}`, p.title]), ...data.others].flatMap(([keys, words]) => {
    const dt = document.createElement("dt"), dd = document.createElement("dd");
    dt.textContent = keys; dd.textContent = words;
    return [dt, dd];
  }));
  // Streamlit takes this element away and draws it anew while a page opens: the list stays open, and a key pressed meanwhile counts.
  const kept = (window.calvizShortcuts ??= {});
  kept.stop?.();
  const listKeys = () => { kept.listed = true; if (dialog.isConnected && !dialog.open) dialog.showModal(); };
  dialog.onclose = () => { kept.listed = false; };
  parentElement.querySelector(".open").onclick = listKeys;
  if (kept.listed) listKeys();
  const say = (text) => { status.textContent = text; setTimeout(() => { status.textContent = ""; }, 2500); };

  // A picture has no access to the fonts of its page: a copied one brings the font along, a saved one is drawn without it.
  const pageFont = async () => {
    const rules = [...document.styleSheets].flatMap((sheet) => { try { return [...sheet.cssRules]; } catch { return []; } });
    const face = rules.find((one) => one instanceof CSSFontFaceRule && one.style.fontStyle !== "italic"
      && one.style.fontFamily.includes(data.font.replaceAll('"', "")));
    const address = face?.style.src.match(/url\("?([^")]+)/)?.[1];
    if (!address) return "";
    const file = await (await fetch(new URL(address, face.parentStyleSheet.href || document.baseURI))).blob();
    const read = new FileReader();
    const url = await new Promise((done) => { read.onload = () => done(read.result); read.readAsDataURL(file); });
    return `@font-face { font-family: ${data.font}; font-weight: ${face.style.fontWeight}; src: url(${url}); }`;
  };
  const saved = (event) => {
    const chart = event.target instanceof Element && event.target.closest(".modebar-btn") && event.target.closest(".js-plotly-plot");
    const font = chart && chart.layout?.font, family = font?.family;
    if (!family?.startsWith(data.font)) return;
    font.family = family.replace(`${data.font}, `, "");
    setTimeout(() => { font.family = family; });
  };

  // Joins the layers of a drawing into one picture.
  const copyFigure = async (chart) => {
    const { width, height } = chart.getBoundingClientRect();
    const whole = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    whole.setAttribute("xmlns", "http://www.w3.org/2000/svg");
    whole.setAttribute("width", width); whole.setAttribute("height", height);
    const layers = [...chart.querySelectorAll(".main-svg")];
    for (const layer of layers) whole.append(layer.cloneNode(true));
    whole.querySelectorAll(".hoverlayer, .modebar").forEach((one) => one.remove());
    // On the page, lines keep their width whatever the scale; in the picture they grow with it.
    whole.querySelectorAll("[style*=vector-effect]").forEach((one) => one.style.removeProperty("vector-effect"));
    const paint = async () => {
      const fonts = document.createElementNS("http://www.w3.org/2000/svg", "style");
      fonts.textContent = await pageFont().catch(() => "");
      whole.prepend(fonts);
      const image = new Image();
      image.src = "data:image/svg+xml;charset=utf-8," + encodeURIComponent(new XMLSerializer().serializeToString(whole));
      await image.decode();
      const canvas = document.createElement("canvas");
      canvas.width = 3 * width; canvas.height = 3 * height;
      const pen = canvas.getContext("2d");
      pen.fillStyle = (layers[0] && getComputedStyle(layers[0]).backgroundColor) || "#fff";
      pen.fillRect(0, 0, canvas.width, canvas.height);
      pen.drawImage(image, 0, 0, canvas.width, canvas.height);
      return new Promise((done) => canvas.toBlob(done, "image/png"));
    };
    try {
      await navigator.clipboard.write([new ClipboardItem({ "image/png": paint() })]);
      say("Figure copied");
    } catch { say("This browser does not let a page copy"); }
  };

  const typing = "input, textarea, select, [contenteditable]:not([contenteditable=false]), [role=combobox], [role=textbox], [data-testid=stDataFrame]";
  let begun = 0;
  const pressed = (event) => {
    const at = event.composedPath()[0];
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || dialog.open) return;
    if (at instanceof Element && at.closest(typing)) return;
    if (event.key === "Escape" && document.querySelector("[data-testid=stSidebar][data-collapsed=false]")) {
      // As Streamlit closes the drawer.
      document.querySelector("[data-testid=stMain]").dispatchEvent(new MouseEvent("mousedown", { bubbles: true }));
      setTimeout(() => document.querySelector("[data-testid=stExpandSidebarButton]")?.focus(), 300);
    }
    const key = event.key.toLowerCase(), soon = Date.now() - begun < 1500;
    begun = 0;
    if (soon) {
      const page = data.pages.find((p) => p.key === key);
      if (page) {
        event.preventDefault();
        // Streamlit opens the page of the address after a step in the browser's history.
        const base = window.location.pathname.split("/").slice(0, -1).join("/");
        window.history.pushState(null, "", `${base}/${page.page}${window.location.search}`);
        window.dispatchEvent(new PopStateEvent("popstate", { state: null }));
      }
    } else if (key === "g") { begun = Date.now();
    } else if (key === "?") { event.preventDefault(); listKeys();
    } else if (key === "c") {
      const chart = document.querySelector(".js-plotly-plot:hover");
      if (chart) copyFigure(chart);
    }
  };
  // One Tab leaves a table, in whose cells arrows move, and a preview, which is there to be looked at.
  const leave = (event) => {
    if (event.key !== "Tab") return;
    if (event.target.closest("[data-testid=stDataFrame]")) event.stopPropagation();
    const preview = document.querySelector("iframe[title='Preview of the report']")?.contentDocument;
    // Browsers stop at what scrolls, too.
    const passed = preview?.querySelectorAll("a, button, input, summary, [tabindex], .wide, .chart-frame, math") ?? [];
    for (const one of [...passed, ...document.querySelectorAll(".dvn-scroller")]) one.tabIndex = -1;
  };
  // What a chip opens stands at the end of the page, and the drawer at its beginning: a key that opens one (a click without a pointer) also
  // leads into it. To skip leads past the bar.
  const inside = {
    stPopoverButton: "[data-testid=stPopoverBody] :is(input, button:not([aria-label^=Help]), [tabindex='0'])",
    stExpandSidebarButton: "[data-testid=stSidebar] a",
    stSkipToContent: ":has(> .st-key-calviz-bar) ~ * :is(a, button, input)",
  };
  const opened = (event) => {
    const content = !event.detail && event.target instanceof Element && inside[event.target.closest("a, button")?.dataset.testid];
    if (!content) return;
    let looks = 10;
    const enter = () => {
      const first = document.querySelector(content);
      if (first) first.focus(); else if (looks--) setTimeout(enter, 100);
    };
    setTimeout(enter, 200);
  };
  // The field of a file that was read is a new one, as an answer is gone, and the focus would be nowhere: it goes on to the verdict of the file.
  const chosen = (event) => {
    if (!event.target.matches?.("input[type=file], [class*=st-key-calviz-way] *")) return;
    const next = () => document.querySelector(".st-key-calviz-next"), before = next()?.textContent;
    let looks = 600;
    const enter = () => {
      const at = document.activeElement;
      // The button that was pressed may still have the focus or, where it is gone, the title.
      if (at && at !== document.body && !at.closest("[data-testid=stFileUploader], [class*=st-key-calviz-way], h1")) return;
      const link = next()?.querySelector("[data-testid=stPageLink] a");
      if (link && next().textContent !== before) link.focus(); else if (looks--) setTimeout(enter, 200);
    };
    setTimeout(enter, 200);
  };
  document.addEventListener("change", chosen);
  document.addEventListener("click", chosen);
  document.addEventListener("click", opened);
  document.addEventListener("keydown", pressed);
  document.addEventListener("keydown", leave, true);
  document.addEventListener("click", saved, true);
  kept.stop = () => {
    document.removeEventListener("keydown", pressed);
    document.removeEventListener("keydown", leave, true);
    document.removeEventListener("click", saved, true);
    document.removeEventListener("click", opened);
    document.removeEventListener("change", chosen);
    document.removeEventListener("click", chosen);
  };
}
