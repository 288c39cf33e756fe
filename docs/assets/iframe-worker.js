// A browser starts no worker from a page that was opened from the disk, and search is one. There a hidden frame does its
// work: what the page sends comes to the frame's window as a message, and what that sends comes back as one.
if (location.protocol === "file:") {
  window.IFrameWorker = class extends EventTarget {
    constructor(url) {
      super()
      this.frame = document.createElement("iframe")
      this.frame.hidden = true
      document.body.append(this.frame)
      const inner = this.frame.contentWindow, page = inner.document
      page.open()
      inner.postMessage = data => this.dispatchEvent(new MessageEvent("message", { data }))
      inner.importScripts = (...urls) => Promise.all(urls.map(one => added(page, one)))
      this.ready = added(page, url)
      page.close()
    }

    postMessage(data) {
      this.ready.then(() => this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data })))
    }

    terminate() {
      this.frame.remove()
    }
  }
  window.Worker = window.IFrameWorker

  function added(page, url) {
    return new Promise((resolve, reject) => {
      const script = page.createElement("script")
      Object.assign(script, { src: url, onload: resolve, onerror: reject })
      if (!page.body) page.write("<body></body>")
      page.body.append(script)
    })
  }
}
