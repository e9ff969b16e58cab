// The four editors.

import { autocompletion, closeBrackets, closeBracketsKeymap, completionKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { yaml } from "@codemirror/lang-yaml";
import { HighlightStyle, bracketMatching, indentOnInput, indentUnit, syntaxHighlighting } from "@codemirror/language";
import { lintKeymap, setDiagnostics } from "@codemirror/lint";
import { EditorState } from "@codemirror/state";
import { EditorView, keymap, lineNumbers, placeholder } from "@codemirror/view";
import { tags } from "@lezer/highlight";

const COLOURS = HighlightStyle.define([
  { tag: [tags.definition(tags.propertyName), tags.propertyName], color: "var(--code-key)" },
  { tag: [tags.string, tags.special(tags.string), tags.attributeValue], color: "var(--code-text)" },
  { tag: tags.comment, color: "var(--quiet)", fontStyle: "italic" },
  { tag: [tags.meta, tags.separator, tags.punctuation], color: "var(--quiet)" },
  { tag: [tags.keyword, tags.labelName, tags.typeName], color: "var(--accent)" },
]);

/** An editor in the element of that id. `changed` is told of edits, `complete` what may be typed next. */
export function editor(id, label, hint, changed, complete) {
  const nonce = document.querySelector("script[nonce]").nonce;
  return new EditorView({
    parent: document.getElementById(id),
    state: EditorState.create({
      extensions: [
        EditorView.cspNonce.of(nonce),
        EditorView.contentAttributes.of({ "aria-label": label, spellcheck: "false", tabindex: "0" }),
        lineNumbers(),
        history(),
        indentUnit.of("  "),
        indentOnInput(),
        bracketMatching(),
        closeBrackets(),
        yaml(),
        syntaxHighlighting(COLOURS),
        placeholder(hint),
        autocompletion({ override: [(context) => choices(context, id, complete)], icons: false, activateOnTypingDelay: 150 }),
        // Tab goes on to the next control, as everywhere on the page.
        keymap.of([...closeBracketsKeymap, ...completionKeymap, ...lintKeymap, ...historyKeymap, ...defaultKeymap]),
        EditorView.updateListener.of((update) => update.docChanged && changed()),
      ],
    }),
  });
}

export const text = (view) => view.state.doc.toString();

export function setText(view, text) {
  if (view.state.doc.toString() === text) return;
  view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: text }, selection: { anchor: 0 }, scrollIntoView: true });
}

/** Underlines what the markers say, from their column to the end of the line. */
export function mark(view, markers) {
  const { doc } = view.state;
  const diagnostics = markers.map(({ line, column, severity, message }) => {
    const at = doc.line(Math.min(Math.max(line, 1), doc.lines));
    const end = at.from + at.text.trimEnd().length;
    const from = Math.min(at.from + offset(at.text, column - 1), end);
    return { from, to: Math.max(end, from), severity, message };
  });
  view.dispatch(setDiagnostics(view.state, diagnostics));
}

/** Goes to a line. */
export function goTo(view, line) {
  const at = view.state.doc.line(Math.min(Math.max(line, 1), view.state.doc.lines));
  view.dispatch({ selection: { anchor: at.from + at.text.length - at.text.trimStart().length }, effects: EditorView.scrollIntoView(at.from, { y: "center" }) });
  view.focus();
}

/** Where the `count`th character of a text begins: the program counts characters, the editor units of UTF-16. */
function offset(text, count) {
  return [...text].slice(0, count).join("").length;
}

async function choices(context, pane, complete) {
  const line = context.state.doc.lineAt(context.pos);
  const before = line.text.slice(0, context.pos - line.from);
  if (!context.explicit && !/[\w.]$/.test(before)) return null;
  const answer = await complete(pane, line.number - 1, [...before].length).catch(() => undefined);
  if (!answer || answer.choices.length === 0 || context.aborted) return null;
  return {
    from: context.pos - answer.replaced,
    options: answer.choices.map(({ info, ...choice }) => ({ ...choice, info: info || undefined })),
    validFor: /^[\w-]*$/,
  };
}
