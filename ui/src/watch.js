// A list of objects that follows their changes, over the API of the server behind the page.

/** How long to wait before asking again. */
const PAUSE_MS = 1000;
const TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io";

/** Asks the API; a refusal is an error with the words of the server. */
export function client(token) {
  return async (path, { accept = "application/json", ...options } = {}) => {
    const headers = { authorization: `Bearer ${token}`, accept, ...options.headers };
    const response = await fetch(`/live${path}`, { ...options, headers });
    if (response.ok) return response;
    const status = await response.json().catch(() => ({}));
    throw Object.assign(new Error(status.message ?? status.error ?? response.statusText), { code: response.status });
  };
}

/** Lists at `path`, then tells each change, until `signal` ends it. `listed` gets a Table, `changed` a type and a Table. */
export async function follow(api, path, { listed, changed, failed, signal }) {
  while (!signal.aborted) {
    try {
      const table = await (await api(`${path}?limit=500`, { accept: TABLE, signal })).json();
      listed(table);
      const revision = table.metadata.resourceVersion;
      const answer = await api(`${path}?watch=1&resourceVersion=${encodeURIComponent(revision)}`, { accept: TABLE, signal });
      for await (const { type, object } of lines(answer.body)) {
        if (type === "ERROR") break;
        changed(type, object);
      }
    } catch (error) {
      if (signal.aborted) return;
      failed(error);
    }
    await new Promise((done) => setTimeout(done, PAUSE_MS));
  }
}

async function* lines(stream) {
  const decoder = new TextDecoder();
  const reader = stream.getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const parts = (rest + decoder.decode(value, { stream: true })).split("\n");
    rest = parts.pop();
    for (const part of parts) if (part.trim()) yield JSON.parse(part);
  }
}
