export default function ({ parentElement, data }) {
  const button = parentElement.querySelector("button"), caption = button.querySelector("span");
  if (!button.dataset.busy) caption.textContent = data.label;
  button.onclick = async () => {
    try {
      await navigator.clipboard.writeText(data.text);
      caption.textContent = "Copied";
      button.dataset.busy = "1";
      setTimeout(() => { delete button.dataset.busy; caption.textContent = data.label; }, 2000);
    } catch {
      // Browsers do not let a page copy without a secure (https) address.
      window.prompt(data.label, data.text);
    }
  };
}
