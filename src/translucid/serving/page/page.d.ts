// The page's elements by their ids, for the type check: with these, `$("source").value` is known, and `$("sorce")` an error.

type PageElements = Record<"document-download" | "lessons-link", HTMLAnchorElement> &
  Record<
    | "accept-all"
    | "accept-and-download"
    | "clear"
    | "clear-history"
    | "confirm-accept-all"
    | "confirm-delete-entry"
    | "copy-caption"
    | "copy-link"
    | "copy-translation"
    | "delete-document"
    | "delete-entry"
    | "download-without-edits"
    | "generate"
    | "improve"
    | "keep-entry"
    | "next-segments"
    | "open-api-key"
    | "open-history"
    | "open-shortcuts"
    | "previous-segments"
    | "remove-api-key"
    | "show-documents"
    | "show-images"
    | "show-text-models"
    | "show-texts"
    | "swap",
    HTMLButtonElement
  > &
  Record<"image-canvas" | "image-overlay", HTMLCanvasElement> &
  Record<"model-menu", HTMLDetailsElement> &
  Record<
    "accept-all-dialog" | "history-dialog" | "memory-dialog" | "shortcuts-dialog" | "unaccepted-dialog",
    HTMLDialogElement
  > &
  Record<
    | "accept-all-text"
    | "accept-doubtful-label"
    | "accept-doubtful-text"
    | "action-status"
    | "adapter-note"
    | "alternatives"
    | "api-key-problem"
    | "caption"
    | "caption-inspection"
    | "caption-status"
    | "character-count"
    | "classification"
    | "classification-note"
    | "classified-words"
    | "compared-heading"
    | "compared-model-label"
    | "compared-translation"
    | "comparison"
    | "detected-language"
    | "document"
    | "document-kinds"
    | "document-list"
    | "document-name"
    | "document-problem"
    | "document-status"
    | "documents"
    | "drop-overlay"
    | "editor"
    | "editor-notice"
    | "editor-tools"
    | "example-list"
    | "examples"
    | "generated-text"
    | "generated-text-hint"
    | "generation"
    | "history-empty"
    | "history-list"
    | "image"
    | "image-problem"
    | "images"
    | "inspection"
    | "labels"
    | "memory-buttons"
    | "memory-confirmation"
    | "memory-origin"
    | "memory-problem"
    | "memory-share"
    | "memory-source"
    | "model-name"
    | "output"
    | "pivot-note"
    | "problem"
    | "retrieved-note"
    | "section-nav"
    | "segment-range"
    | "segments"
    | "sense-note"
    | "shortcut-list"
    | "source-language"
    | "source-pane"
    | "status"
    | "suggestion-subject"
    | "target-language"
    | "target-pane"
    | "text-models"
    | "text-models-problem"
    | "texts"
    | "texts-and-documents"
    | "translation"
    | "translation-heading"
    | "translation-origin"
    | "unaccepted-text"
    | "unsure-note"
    | "warnings",
    HTMLElement
  > &
  Record<"api-key-form" | "memory-form" | "suggestion-form", HTMLFormElement> &
  Record<
    | "accept-doubtful"
    | "api-key"
    | "camera-file"
    | "document-file"
    | "image-file"
    | "keep-history"
    | "single-key-shortcuts"
    | "temperature"
    | "text-file",
    HTMLInputElement
  > &
  Record<"document-progress", HTMLProgressElement> &
  Record<
    | "captioner"
    | "classifier"
    | "compared-model"
    | "explanation-method"
    | "formality"
    | "from"
    | "generator"
    | "model"
    | "segment-filter"
    | "segment-order"
    | "to",
    HTMLSelectElement
  > &
  Record<"input-text" | "memory-target" | "source" | "suggestion-text", HTMLTextAreaElement>;

// Swagger UI, which another script loads.
declare function SwaggerUIBundle(options: object): void;
