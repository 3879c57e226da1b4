// Runs the checker beside the page, so that typing never waits for it.
importScripts("pyodide.js");

async function start() {
  const have = await (await fetch("have.json")).json();
  const python = await loadPyodide({ indexURL: "./" });
  for (const wheel of have.wheels) await python.loadPackage(new URL(wheel, self.location).href, { messageCallback: () => {} });
  python.unpackArchive(await (await fetch("stmlang.zip")).arrayBuffer(), "zip");
  await python.runPythonAsync(await (await fetch("bridge.py")).text());
  return python;
}

const ready = start();
ready.then(
  (python) => postMessage({ kind: "ready", library: JSON.parse(python.globals.get("library")()) }),
  (error) => postMessage({ kind: "failed", error: String(error) }),
);

onmessage = async ({ data }) => {
  const python = await ready;
  try {
    if (data.kind === "format") postMessage({ kind: "formatted", text: python.globals.get("formatted")(data.text) });
    else postMessage({ kind: "answer", number: data.number, answer: JSON.parse(python.globals.get("answer")(data.text, data.sizes, data.target)) });
  } catch (error) {
    postMessage({ kind: "fault", number: data.number, error: String(error) });
  }
};
