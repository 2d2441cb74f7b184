from tests.docs import supported_ops


def test_page_is_what_the_tables_say():
    fresh = supported_ops.PAGE.read_text() == supported_ops.page()
    assert fresh, "run: make supported-ops"
