// The record of the model, which the script model.js of an exported folder holds.
declare const MODEL: any;
// What the scripts in engine/ declare, by name; the export adds it to page.js.
declare const ENGINE: Record<string, any>;
