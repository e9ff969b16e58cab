// Starts `skiff lsp` and connects the editor to it; everything else is the server's.
"use strict";

const vscode = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

let client;

function start() {
  const settings = vscode.workspace.getConfiguration("kubeskiff");
  const server = { command: settings.get("path") || "skiff", args: ["lsp"] };
  const kubeconfig = settings.get("kubeconfig");
  client = new LanguageClient("kubeskiff", "kubeskiff", server, {
    documentSelector: [{ language: "yaml" }, { language: "json" }, { pattern: "**/skiff.toml" }],
    initializationOptions: {
      fromCluster: settings.get("fromCluster"),
      ...(kubeconfig ? { kubeconfig } : {}),
      ...(settings.get("context") ? { context: settings.get("context") } : {}),
    },
  });
  return client.start().catch((error) => {
    vscode.window.showErrorMessage(`kubeskiff: ${server.command} can't be started: ${error.message}`);
  });
}

async function restart() {
  await client?.stop().catch(() => {});
  await start();
}

exports.activate = (context) => {
  context.subscriptions.push(
    vscode.commands.registerCommand("kubeskiff.restart", restart),
    vscode.workspace.onDidChangeConfiguration((change) => change.affectsConfiguration("kubeskiff") && restart()),
  );
  return start();
};

exports.deactivate = () => client?.stop();
