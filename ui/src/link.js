// All texts in the fragment of a link, which browsers never send.

const PANES = ["definition", "object", "old", "request", "minors"];
/** What a link may unfold to. */
const BYTES_MAX = 2 << 20;

/** `#z=…`: deflated JSON; `#j=…` where the browser can't deflate. */
export async function encode(texts) {
  const bytes = new TextEncoder().encode(JSON.stringify(PANES.map((pane) => texts[pane] ?? "")));
  if (typeof CompressionStream === "undefined") return `j=${toBase64(bytes)}`;
  const stream = new Blob([bytes]).stream().pipeThrough(new CompressionStream("deflate-raw"));
  return `z=${toBase64(new Uint8Array(await new Response(stream).arrayBuffer()))}`;
}

/** The texts of a fragment, or nothing if it holds none. */
export async function decode(fragment) {
  const [, form, data] = fragment.match(/^#?([zj])=([A-Za-z0-9_-]+)$/) ?? [];
  if (!form) return undefined;
  try {
    const bytes = fromBase64(data);
    const text = new TextDecoder().decode(form === "j" ? bytes : await inflate(bytes));
    const texts = JSON.parse(text);
    if (!Array.isArray(texts) || !texts.every((text) => typeof text === "string")) return undefined;
    return Object.fromEntries(PANES.map((pane, at) => [pane, texts[at] ?? ""]));
  } catch {
    return undefined;
  }
}

async function inflate(bytes) {
  const reader = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw")).getReader();
  const parts = [];
  let size = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return new Uint8Array(await new Blob(parts).arrayBuffer());
    size += value.length;
    if (size > BYTES_MAX) throw new Error("the link holds too much");
    parts.push(value);
  }
}

function toBase64(bytes) {
  let text = "";
  for (const byte of bytes) text += String.fromCharCode(byte);
  return btoa(text).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

function fromBase64(text) {
  return Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (character) => character.charCodeAt(0));
}
