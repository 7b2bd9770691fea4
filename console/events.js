// Server-sent events over fetch: they need a header and a body, which EventSource cannot send.

/**
 * @typedef {{ id: string, event: string, data: any }} Told
 */

/**
 * The events of a response, until it ends.
 * @param {Response} response
 * @returns {AsyncGenerator<Told>}
 */
export async function* events(response) {
  const body = response.body;
  if (!body) return;
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      rest += value;
      const blocks = rest.split("\n\n");
      rest = blocks.pop() ?? "";
      for (const block of blocks) {
        const told = parse(block);
        if (told) yield told;
      }
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

/** @param {string} block @returns {Told | null} */
export function parse(block) {
  let [id, event] = ["", "message"];
  const data = [];
  for (const line of block.split("\n")) {
    const colon = line.indexOf(":");
    const [name, value] = colon < 0 ? [line, ""] : [line.slice(0, colon), line.slice(colon + 1).replace(/^ /, "")];
    if (name === "id") id = value;
    else if (name === "event") event = value;
    else if (name === "data") data.push(value);
  }
  return data.length ? { id, event, data: JSON.parse(data.join("\n")) } : null;
}
