// Starts `stmlang lsp` for specs. Everything else is the server's.

const path = require("node:path");
const { commands, window, workspace } = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

let client;

function command() {
  const [program, ...words] = workspace.getConfiguration("stmlang").get("command");
  const folder = workspace.workspaceFolders?.[0]?.uri.fsPath;
  const relative = /[\\/]/.test(program) && !path.isAbsolute(program);
  return { command: relative && folder ? path.join(folder, program) : program, args: words };
}

async function start() {
  client = new LanguageClient("stmlang", "stmlang", command(), {
    documentSelector: [{ language: "stm" }],
    synchronize: { fileEvents: workspace.createFileSystemWatcher("**/*.stm") },
  });
  try {
    await client.start();
  } catch (error) {
    window.showErrorMessage(
      `stmlang: the language server did not start (${error.message}). ` +
        "Install it with `pip install 'stmlang[lsp]'`, or say in `stmlang.command` where it is.",
    );
  }
}

async function activate(context) {
  context.subscriptions.push(
    commands.registerCommand("stmlang.restart", async () => {
      await client?.stop();
      await start();
    }),
  );
  await start();
}

function deactivate() {
  return client?.stop();
}

module.exports = { activate, deactivate };
