// The page: a text, its sizes, and what the checker says of them a moment after the last key.
const at = (name) => document.getElementById(`play-${name}`);
const place = new URL(".", document.currentScript.src);
const START = { text: at("text").value, sizes: at("sizes").value };

async function begin() {
  if (location.protocol === "file:") {
    return say("A browser runs this page only from a server: python -m http.server --directory build/site");
  }
  const have = await (await fetch(new URL("have.json", place))).json();
  if (!have.pyodide) return say("This site was built without Pyodide: build it where npm can reach its registry.");
  say("Python is being loaded ...");
  const worker = new Worker(new URL("worker.js", place));
  let number = 0;
  let waiting;
  let library = {};
  const ask = () => {
    clearTimeout(waiting);
    number += 1;  // what is still being answered is about another text
    waiting = setTimeout(() => {
      at("output").dataset.state = "waiting";
      worker.postMessage({ kind: "check", number, text: at("text").value, sizes: at("sizes").value, target: at("target").value });
    }, 250);
  };
  worker.onerror = (event) => say(`The checker does not start: ${event.message}`);
  worker.onmessage = ({ data }) => {
    if (data.kind === "ready") {
      library = data.library;
      for (const name of Object.keys(library)) at("library").add(new Option(name));
      for (const part of ["library", "format", "sizes", "target"]) at(part).disabled = false;
      ask();
    } else if (data.kind === "failed" || data.kind === "fault") say(`The checker failed: ${data.error}`);
    else if (data.kind === "formatted") { at("text").value = data.text; ask(); }
    else if (data.number === number) show(data.answer);
  };
  at("text").addEventListener("input", ask);
  at("sizes").addEventListener("input", ask);
  at("target").addEventListener("change", ask);
  at("format").addEventListener("click", () => worker.postMessage({ kind: "format", text: at("text").value }));
  at("library").addEventListener("change", () => {
    const chosen = at("library").selectedIndex ? library[at("library").value] : START;
    at("text").value = chosen.text;
    at("sizes").value = chosen.sizes;
    ask();
  });
}

function say(words) {
  at("state").textContent = words;
}

function show(answer) {
  const count = answer.findings.filter((one) => one.severity === "error").length;
  say(answer.ok ? "Right." : `${count} error${count === 1 ? "" : "s"}.`);
  const parts = [answer.text, answer.facts, answer.plan];
  if (answer.ok && !answer.numpy) parts.push("Facts and plans take numpy for Pyodide, which this site was built without.");
  at("output").textContent = parts.filter(Boolean).join("\n\n");
  at("output").dataset.state = answer.ok ? "right" : "wrong";
}

begin();
