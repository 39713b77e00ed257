"""The routes of text models: classification, its explanation, and text generation by a language model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fastapi.responses import JSONResponse

from bitext.cancellation import between_steps
from translucid.ground.errors import UserError
from translucid.inspection.explain import available_methods, explain, faithfulness, random_faithfulness
from translucid.inspection.inspected import rounded_probability
from translucid.language.fields import ClassifyFields, GenerateFields
from translucid.language.label_case import LabelCase, contrast_labels
from translucid.language.text_classifier import SingleClassifier
from translucid.serving.edge.failures import ApiError
from translucid.serving.requests import Call, Handlers

if TYPE_CHECKING:
    from translucid.decoding.decoding_options import DecodingOptions
    from translucid.language.generator import Generated, Piece

MAX_EXPLAINED = 2000
"""The maximum number of characters in a text whose label is explained; each word of it is left out once."""


class TextModelRoutes(Handlers):
    """The handlers; `routing.py` binds them to their paths."""

    async def classify(self, call: Call[ClassifyFields]) -> JSONResponse:
        """Classify a text, and return the label's probability after each word, with an explanation if requested."""
        fields = call.fields
        served = self.context.catalog.other(fields.reads, fields.model or None)
        text, method, label = fields.q, fields.explain, fields.label
        if not text.strip():
            raise ApiError(400, "Invalid request: there are no words to classify")
        if label and label not in served.model.labels:
            raise ApiError(400, f"Invalid request: there is no label {label[:50]!r}")
        if method and (method not in available_methods() or method == "attention"):
            raise ApiError(400, f"Invalid request: there is no explanation by {method[:20]!r} here")
        if method and len(text) > MAX_EXPLAINED:
            message = f"Invalid request: {len(text)} characters exceed the limit of {MAX_EXPLAINED} for explain"
            raise ApiError(400, message)

        def answer() -> dict[str, Any]:
            result, member = served.model.classify(text), served.model.members[0]
            between_steps()
            probabilities = {name: round(value, 6) for name, value in result.probabilities.items()}
            row = {"label": result.label, "probabilities": probabilities}
            return row | _words(member, text, label or result.label, method, fields.instead_of)

        return JSONResponse({"model": served.name, **await call.task.run(answer)})

    async def generate(self, call: Call[GenerateFields]) -> JSONResponse:
        """Continue a text, and return the probability of each piece and of other candidates."""
        fields = call.fields
        served = self.context.catalog.other(fields.reads, fields.model or None)
        options = _decoding(fields, served.model.configuration.decoding)

        def answer() -> dict[str, Any]:
            result = served.model.generate(fields.q, options, max_tokens=fields.max_tokens)
            between_steps()
            row = {"text": result.text, "ended": result.nbest[0].ended, "backwards": result.backwards}
            return {**row, "pieces": _pieces(result, fields.considered)}

        return JSONResponse({"model": served.name, **await call.task.run(answer)})


def _words(member: SingleClassifier, text: str, label: str, method: str, instead_of: str) -> dict[str, Any]:
    """Return each word with the label's probability after it, and with its importance if there is a method.

    With another label, `instead_of`, the importance is that for the log-odds of the two.
    """
    (ids,) = member.ids([text])
    try:
        case = LabelCase(member.model, member.tokenizer, ids, label, text)
    except UserError:  # the tokenizer has removed all characters of the text
        return {"words": []}
    rows: list[dict[str, Any]] = []
    for word, probability in zip(case.source_words, case.unfolding().tolist(), strict=True):
        rows.append({"word": word, "probability": round(probability, 5)})
    if not method:
        return {"words": rows}
    contrasted = contrast_labels(case, instead_of) if instead_of else None
    explained = contrasted or case
    explanation = explain(explained, method, samples=200)
    for row, value in zip(rows, explanation.importance[0].tolist(), strict=True):
        row["importance"] = round(value, 4)
    record: dict[str, Any] = {"method": method, "label": label, "fit": explanation.fit}
    record["faithfulness"] = faithfulness(explained, explanation)._asdict()
    record["random"] = random_faithfulness(explained)._asdict()
    if contrasted:
        record["contrast"] = contrasted.to_json()
    return {"words": rows, "explanation": record}


def _decoding(fields: GenerateFields, decoding: DecodingOptions) -> DecodingOptions:
    """Return the decoding options of a run with those of a request.

    Raises:
        ApiError: 400, a value is invalid.
    """
    from translucid.language.generator import generation_options

    names = {"temperature", "top_p", "top_k", "seed", "beam"}
    changes = fields.model_dump(include=names, exclude_none=True)
    try:
        return generation_options(decoding.model_copy(update={"nbest": 1}), changes)
    except UserError as error:
        raise ApiError(400, f"Invalid request: {error}") from error


def _pieces(result: Generated, count: int) -> list[dict[str, Any]]:
    """Return the generated pieces, each with this number of candidates at its step."""
    rows = list(map(_piece, result.nbest[0].written))
    if count:
        for row, candidates in zip(rows, result.considered(count), strict=True):
            row["considered"] = list(map(_piece, candidates))
    return rows


def _piece(piece: Piece) -> dict[str, Any]:
    return {"piece": piece.text, "probability": rounded_probability(piece.log_probability)}
