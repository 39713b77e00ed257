// Choose the language of a page before its other scripts run, and load the catalog of its texts.
//
// This is a script, not a module, so that it also works in pages that are opened as files. Above it, the server and the web
// export define `pageLanguages`: by the codes of the catalogs, the names of their languages. English needs none.

(() => {
  const page = /** @type {any} */ (globalThis);
  const available = ["en", ...Object.keys(page.pageLanguages ?? {})];
  const linked = [location.search, location.hash].map((part) => new URLSearchParams(part.slice(1)).get("lang"));
  page.pageLanguage = firstAvailable([...linked, storedLanguage(), ...navigator.languages]);
  if (page.pageLanguage === "en") return;
  document.documentElement.classList.add("untranslated");
  // With `defer`, the catalog is loaded beside the page, and runs before its modules and its deferred scripts.
  document.write(`<script defer src="languages/${page.pageLanguage}.js"></script>`);

  function storedLanguage() {
    try {
      return JSON.parse(localStorage.getItem("translucid.language") ?? "null");
    } catch {
      return null;
    }
  }

  // Return the first of these codes for which there is a catalog, of exactly this language or without its region.
  function firstAvailable(codes) {
    for (const code of codes) {
      const wanted = String(code).toLowerCase();
      const found =
        available.find((known) => known.toLowerCase() === wanted) ??
        available.find((known) => known === wanted.split("-")[0]);
      if (found) return found;
    }
    return "en";
  }
})();
