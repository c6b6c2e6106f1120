"""Takes pictures of the site's start page at three widths: python -m docs.screenshots [SITE].

SITE is the folder of the built site, `site` by default (`make docs`). Needs the extra `dev`,
Chromium and chromedriver. The pictures are docs/images/site_<width>.png.
"""

import io
import pathlib
import shutil
import sys

from PIL import Image
from selenium import webdriver

FOLDER = pathlib.Path(__file__).with_name("images")
SIZES = {360: 740, 768: 900, 1280: 800}  # width to height, CSS pixels
COLORS = 256  # of stored pictures


def take(site: pathlib.Path) -> None:
    """Writes a picture of the start page for each of `SIZES`."""
    options = webdriver.ChromeOptions()
    for flag in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--hide-scrollbars"):
        options.add_argument(flag)
    options.binary_location = shutil.which("chromium") or shutil.which("google-chrome") or ""
    driver = webdriver.Chrome(options, webdriver.ChromeService(shutil.which("chromedriver")))
    try:
        for width, height in SIZES.items():
            size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
            driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
            driver.get((site / "index.html").resolve().as_uri())
            with Image.open(io.BytesIO(driver.get_screenshot_as_png())) as picture:
                small = picture.convert("RGB").quantize(COLORS)
            small.save(FOLDER / f"site_{width}.png", optimize=True)
            print(f"took docs/images/site_{width}.png")
    finally:
        driver.quit()


if __name__ == "__main__":
    take(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "site"))
