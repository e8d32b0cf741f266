from textstats import most_common, words


def test_words_are_lower_case_and_without_marks():
    assert words("It's late. LATE!") == ["it's", "late", "late"]


def test_the_most_frequent_come_first():
    assert most_common("b a c b a b", 2) == [("b", 3), ("a", 2)]


def test_equally_frequent_words_come_in_alphabetical_order():
    assert most_common("z y x", 3) == [("x", 1), ("y", 1), ("z", 1)]


def test_an_empty_text_has_none():
    assert most_common("", 5) == []
