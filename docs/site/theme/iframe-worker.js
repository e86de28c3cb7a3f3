// The search runs in a worker, and browsers start none for pages that are opened as files. There an invisible frame stands in for it.
if (location.protocol === "file:")
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.appendChild(frame);
      const inner = frame.contentWindow;
      inner.document.open();
      inner.document.write("<!doctype html><html><head></head><body></body></html>");
      inner.document.close();
      const load = (address) =>
        new Promise((loaded, failed) => {
          const script = inner.document.createElement("script");
          script.src = address;
          script.onload = loaded;
          script.onerror = failed;
          inner.document.body.appendChild(script);
        });
      inner.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", {data}));
      inner.importScripts = (...addresses) => addresses.reduce((before, address) => before.then(() => load(address)), Promise.resolve());
      this.inner = inner;
      this.ready = load(url);
    }
    postMessage(data) {
      this.ready.then(() => this.inner.dispatchEvent(new MessageEvent("message", {data})));
    }
    terminate() {
      this.inner.frameElement.remove();
    }
  };
