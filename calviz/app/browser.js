export default function ({ parentElement, data, setStateValue }) {
  const button = parentElement.querySelector(".link"), save = parentElement.querySelector(".save");
  const idle = "Copy link";
  // Few read a button's title: for a moment it says what it did.
  const say = (on, name, done) => {
    const caption = on.querySelector("span");
    if (!on.dataset.busy) caption.textContent = name;
    if (!done) return;
    caption.textContent = done;
    on.dataset.busy = "1";
    setTimeout(() => { delete on.dataset.busy; caption.textContent = name; }, 3000);
  };
  parentElement.querySelector(".beside").hidden = !data.view;
  button.title = data.help;
  save.title = data.save;
  say(button, idle);
  say(save, "Save this view");
  const here = () => {
    const url = new URL(window.location.href);
    for (const [name, value] of Object.entries(data.address || {})) {
      if (value === null) url.searchParams.delete(name); else url.searchParams.set(name, value);
    }
    return url;
  };
  button.onclick = async () => {
    const url = here();
    button.dataset.link = url.href;
    try {
      await navigator.clipboard.writeText(url.href);
      say(button, idle, "Link copied: it holds no data");
    } catch {
      // Browsers do not let a page copy without a secure (https) address.
      window.prompt(idle, url.href);
    }
  };
  save.onclick = () => {
    const url = here(), settings = {};
    for (const name of new Set(url.searchParams.keys())) {
      const values = url.searchParams.getAll(name);
      if (!["data", "file"].includes(name)) settings[name] = values.length > 1 ? values : values[0];
    }
    const page = url.pathname.split("/").pop();
    const view = { ...data.view, page: page && page !== "start" ? page : "overview", settings };
    const file = new Blob([JSON.stringify(view, null, 1) + "\n"], { type: "application/json" });
    const to = document.createElement("a");
    to.href = URL.createObjectURL(file);
    to.download = data.file;
    to.click();
    URL.revokeObjectURL(to.href);
    say(save, "Save this view", "Saved: open it like a file");
  };
  if (data.go && data.go.turn !== window.calvizWent) {
    // Streamlit restores every setting from the address after a step in the browser's history; this makes such a step.
    window.calvizWent = data.go.turn;
    const path = window.location.pathname.split("/").slice(0, -1).join("/");
    const { page, query } = data.go;
    // Delayed until the widgets of this run hold their new values: the step sends the values that they hold.
    setTimeout(() => {
      window.history.pushState(null, "", `${path}/${page}?${query}`);
      window.dispatchEvent(new PopStateEvent("popstate", { state: null }));
    }, 500);
  }
  const main = document.querySelector("[data-testid=stMainBlockContainer]");
  const app = document.querySelector("[data-testid=stApp]") || document.body;
  let theme = getComputedStyle(app).backgroundColor;
  const look = () => {
    if (!main) return;
    const style = getComputedStyle(main);
    const width = main.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
    const size = width >= data.wide ? "wide" : width <= data.narrow ? "narrow" : width < data.usual ? "small" : "usual";
    if (size !== data.size) { data.size = size; setStateValue("size", size); }
    const now = getComputedStyle(app).backgroundColor;
    if (now !== theme) { theme = now; setStateValue("theme", now); }
    const held = window.calvizHeld, title = main.querySelector("h1");
    const gone = held && (!held.isConnected || held.disabled || (held === title && held.id !== window.calvizHeldId));
    if (gone && title && document.activeElement === document.body) {
      // What had the focus is gone (a title that changes is the same element, and loses it): the next Tab goes on after the title, not at the
      // top of the page.
      title.tabIndex = -1;
      title.focus({ preventScroll: true });
    }
  };
  const hold = (event) => { window.calvizHeld = event.target; window.calvizHeldId = event.target.id; };
  document.addEventListener("focusin", hold);
  const timer = setInterval(look, 700);
  look();
  // Plotly takes every touch of a figure that selects for a drag, and the page does not scroll. Where it sees no touch, a swipe scrolls and a
  // tap becomes the click of a mouse; where a drag picks a range, it has to see them.
  const leave = (event) => {
    window.calvizTap = null;
    const figure = event.target.closest(".js-plotly-plot");
    if (figure && figure.layout?.dragmode !== "select") event.stopPropagation();
  };
  document.addEventListener("touchstart", leave, { capture: true, passive: true });
  // What a tap selects may move what stands above the figure: it stays where it is until the next touch. Not every browser sees to that.
  const stay = (event) => {
    const figure = matchMedia("(hover: none)").matches && event.target.closest("[data-testid=stElementContainer]:has(.js-plotly-plot)");
    const page = main?.closest("[data-testid=stMain]"), key = figure && [...figure.classList].find((name) => name.startsWith("st-key"));
    if (!key || !page) return;
    const tap = window.calvizTap = {}, top = figure.getBoundingClientRect().top, end = Date.now() + 10_000;
    const hold = () => {
      const at = document.querySelector(`.${key}`)?.getBoundingClientRect();
      // Drawn anew, it has no height for a moment.
      if (at?.height) page.scrollTop += at.top - top;
      if (window.calvizTap === tap && Date.now() < end) requestAnimationFrame(hold);
    };
    hold();
  };
  document.addEventListener("click", stay, true);
  // Streamlit's links to rooms carry no query, and it keeps the browser from opening a link in a tab of its own.
  const carry = (event) => {
    const link = event.target.closest("a[data-testid*=Nav]");
    if (link && !(link.search && link.matches("[data-testid^=stPage]"))) link.search = here().search;
    if (link && (event.ctrlKey || event.metaKey || event.shiftKey) && event.type === "click") event.stopPropagation();
    // Streamlit closes the drawer for the browser of a phone only; for any, if something beside it is pressed.
    else if (link && event.type === "click") setTimeout(() => main.dispatchEvent(new MouseEvent("mousedown", { bubbles: true })), 100);
  };
  const kinds = ["pointerdown", "keydown", "click"];
  for (const kind of kinds) document.addEventListener(kind, carry, true);
  try {
    // Kept by the browser for this tab alone: after a reload the new session finds the files of the one before.
    const kept = sessionStorage.getItem("calviz");
    if (kept && kept !== data.secret && !window.calvizAsked) setStateValue("secret", kept);
    else if (data.files.length) sessionStorage.setItem("calviz", data.secret);
    else sessionStorage.removeItem("calviz");
    window.calvizAsked = true;
    // A link that waits for its file asks the other tabs of this browser, once; the channel stays, as an answer may come between two runs.
    const others = window.calvizOthers ||= new BroadcastChannel("calviz");
    others.onmessage = ({ data: { key, secret } }) => {
      if (secret) { if (key === data.waits) setStateValue("secret", secret); }
      else if (data.files.includes(key)) others.postMessage({ key, secret: data.secret });
    };
    if (data.waits && window.calvizWaits !== data.waits) others.postMessage({ key: data.waits });
    window.calvizWaits = data.waits;
  } catch { /* without storage a reload forgets the files, and other tabs do not find them */ }
  return () => {
    clearInterval(timer);
    document.removeEventListener("focusin", hold);
    document.removeEventListener("touchstart", leave, true);
    document.removeEventListener("click", stay, true);
    for (const kind of kinds) document.removeEventListener(kind, carry, true);
  };
}
