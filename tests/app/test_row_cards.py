"""Rows worth looking at, with the texts and the pictures that the file names."""

import pytest

from tests.app.pages import open_page, quiet, text_of, upload

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 20


@pytest.mark.slow
def test_texts_and_pictures_stand_beside_the_rows(tmp_path):
    (tmp_path / "0.png").write_bytes(PNG)
    rows = [f"{'cat' if i % 3 else 'dog'},0.9,0.1,tale <b>{i},{i}.png" for i in range(60)]
    content = ("label,p_cat,p_dog,tale,image\n" + "\n".join(rows)).encode()
    app = upload(open_page(), "tales.csv", content).open("reliability")
    beside = app.segmented_control(key="beside")
    assert beside.options == ["tale", "id"]
    beside.set_value("tale").run()
    # Every third is a mistake; the surest come first.
    assert "tale <b>0" in text_of(quiet(app))
    app.segmented_control(key="beside").set_value("id").run()
    app.text_input(key="calviz.pictures.folder").set_value(str(tmp_path / "none")).run()
    assert "There is no folder" in text_of(quiet(app))
    app.text_input(key="calviz.pictures.folder").set_value(str(tmp_path)).run()
    text = text_of(quiet(app))
    assert "Not shown: there is no '3.png' in the folder" in text
    # The first twelve are shown; one of them has a picture.
    assert [c.value for c in app.caption].count("no picture") == 11
