"""Export to a web page that translates in the visitor's browser: `engine` computes, `page.js` shows."""
