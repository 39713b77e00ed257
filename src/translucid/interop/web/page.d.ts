// The record of the model, which the script model.js of an exported folder holds.
declare const MODEL: any;
