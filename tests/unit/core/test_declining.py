"""The rule that tells abstentions by their words: narrow, so that an answer hardly ever passes for one."""

import time

import pytest

from judgekit.core.sentences import abstention_rule

DECLINES = [
    "The notes do not say.",
    "I don't know.",
    "I don’t know.",
    "Cannot be answered from the context.",
    "This cannot be answered from the given context.",
    "The question cannot be answered from the context.",
    "I do not know who dug it.",
    "Sorry, I don't have that information.",
    "I'm not sure.",
    "I am unable to answer that.",
    "No information available.",
    "The documents do not mention this.",
    "There is no information about this in the context.",
    "I couldn't find anything about it in the notes.",
    "The notes are silent on this.",
    "Not mentioned in the notes.",
    "Unknown.",
    "The provided documents don't contain the answer.",
    "I have no idea.",
    "Based on the provided context, I cannot determine who dug the canal.",
    "It is not stated in the passages.",
    "It isn't stated.",
    "There is not enough information to answer.",
    "The answer is not in the context.",
    "Unanswerable.",
    "N/A",
    "I can't help with that.",
    "The sources do not say who dug the canal.",
    "Our records don't show that.",
    "I'm afraid I can't tell from these notes.",
    "Nothing in the notes says who dug it.",
    "The text does not specify.",
    "The canal's builder is not mentioned in the notes.",
    "None of the notes says.",
    "idk",
    "I cannot answer this question.",
    "I'm sorry, but I don't know.",
    "Sorry, but the notes do not say.",
    "None of the passages says who dug it.",
    "Ich weiß es nicht.",
    "Je ne sais pas.",
    "No lo sé.",
    "Unfortunately, the context does not contain the answer.",
    "No mention of it is made in the notes.",
    "Your question cannot be answered with the given documents.",
    "The canal's digger cannot be determined from the passages.",
    "I don't know. The notes only describe the canal's length.",
    "I was unable to find the answer in the documents.",
    "Sorry. I don't know.",
    "I do not have enough information to answer the question.",
    "I'm sorry, but I can't assist with that request.",
    "I cannot provide that information.",
    "The response was filtered due to the content management policy of the service.",
    "No relevant documents were found.",
    "Sorry, I didn't find anything.",
    "NO_ANSWER",
    "Cannot determine.",
    "Out of scope.",
    "Das steht nicht in den Dokumenten.",
    "Dazu habe ich keine Informationen.",
    "Je n'ai pas trouvé cette information dans le document.",
    "Le contexte ne mentionne pas cette date.",
    "No dispongo de esa información.",
    "El documento no menciona esa fecha.",
    "Non lo so.",
    "Não sei.",
    "Не знаю.",
    "根据提供的文档,无法回答该问题。",
    "提供されたコンテキストには記載がありません。",
]

ANSWERS = [
    "It opens at nine.",
    "The canal was dug by monks.",
    "He did not know that the canal was closed.",
    "The law does not specify a limit; it is 30 km/h by decree.",
    "No evidence was found of water on Mars before 1998.",
    "The contract says no answer is due before May.",
    "Not in 1830 but in 1831.",
    "They could not find gold and left in 1850.",
    "We did not find the gold at the first dig.",
    "Your request was blocked by the firewall of the office.",
    "We cannot provide refunds after 30 days.",
    "Das wird im Winter nicht geheizt.",
    "No documents are needed to enter.",
    "Cannot determine was the verdict of the jury in 1901.",
    "The documents do not mention the year. However, Smith dug it in 1830.",
    "I don't know the exact year, but it was about 1830.",
    "You cannot say that smoking is safe; it causes cancer.",
    "The password cannot be found in the database because it is hashed.",
    "We do not include shipping in the price.",
    "The API does not provide a bulk endpoint; use pagination.",
    "No data is stored on the device.",
    "None",
    "No.",
    "I did not answer the phone, said the mayor.",
    "It is not available in Europe.",
    "There is no context menu in version 2.",
    "The information is not stored after 30 days.",
    "Data is not provided to third parties.",
    "The answer is not 4; it is 5.",
    "Your records cannot be deleted after 30 days.",
    "There is no evidence that vaccines cause autism.",
    "",
    "  ",
    "I'm not sure. Maybe 1830.",
    "The file does not contain macros.",
    "The device is not included in the kit.",
    "Smith dug it. The notes do not say when.",
    "Nothing is known for certain, but Smith dug it.",
    "There is no answer key in the book.",
    "No details are shared with partners.",
]


@pytest.mark.parametrize("answer", DECLINES)
def test_what_declines_is_an_abstention(answer: str) -> None:
    assert abstention_rule(answer)


@pytest.mark.parametrize("answer", ANSWERS)
def test_what_answers_is_none(answer: str) -> None:
    assert not abstention_rule(answer)


@pytest.mark.parametrize(
    "piece", ["the notes ", "no ", "i do not ", "is not in ", "sorry, ", "[1] ", "x", "\u200b", "none of the "]
)
def test_time_is_linear_in_the_length_of_the_answer(piece: str) -> None:
    start = time.process_time()
    abstention_rule(piece * 50_000)
    assert time.process_time() - start < 2.0
