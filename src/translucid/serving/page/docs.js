// The API's documentation, by Swagger UI.
SwaggerUIBundle({ url: "spec", dom_id: "#docs" });
