"""The articles of the generated shop: things for the house, each in the styles that its material comes in."""

from __future__ import annotations

import random
from typing import NamedTuple

_STYLES = {
    "ceramic": ("WHITE", "CREAM", "BLUE SPOTTED", "SAGE GREEN", "RUSTIC", "FLORAL", "HAND PAINTED", "TERRACOTTA"),
    "textile": ("RED GINGHAM", "BLUE STRIPE", "FLORAL", "NATURAL LINEN", "VINTAGE ROSE", "POLKA DOT", "MUSTARD", "BEE PRINT"),
    "wood": ("OAK", "PINE", "BAMBOO", "WALNUT", "WHITEWASHED", "CARVED"),
    "metal": ("COPPER", "BRASS", "CREAM ENAMEL", "GALVANISED", "BLACK IRON", "ANTIQUE SILVER"),
    "glass": ("CLEAR", "FROSTED", "AMBER", "RIBBED", "SMOKED"),
    "paper": ("KRAFT", "BOTANICAL", "STARRY", "GOLD FOIL", "TARTAN", "WOODLAND", "ALPHABET"),
}  # fmt: skip

_THINGS = {
    "ceramic": {"TEAPOT": 12.50, "MUG": 3.75, "CEREAL BOWL": 4.25, "CAKE STAND": 14.95, "EGG CUP": 1.65, "VASE": 8.50,
                "PLANT POT": 5.95, "MILK JUG": 4.95, "SUGAR BOWL": 4.50, "SIDE PLATE": 3.25, "BUTTER DISH": 7.95},
    "textile": {"CUSHION COVER": 7.95, "TEA TOWEL": 3.25, "APRON": 8.50, "TABLE RUNNER": 9.95, "OVEN GLOVE": 4.95,
                "SHOPPING BAG": 2.95, "BUNTING": 4.95, "PENCIL CASE": 2.25, "LAUNDRY BAG": 6.45, "PEG BAG": 4.25},
    "wood": {"PICTURE FRAME": 5.95, "COAT HOOK": 4.25, "CHOPPING BOARD": 9.95, "BREAD BIN": 16.95, "SPICE RACK": 12.75,
             "TRINKET BOX": 6.25, "WALL CLOCK": 14.95, "TOY TRAIN": 9.95, "BIRD HOUSE": 8.25},
    "metal": {"LANTERN": 8.95, "WATERING CAN": 12.95, "CANDLESTICK": 3.95, "FRUIT BASKET": 10.95, "BISCUIT TIN": 4.95,
              "DOOR STOP": 5.45, "KEY RACK": 4.65, "TRAY": 6.95},
    "glass": {"TUMBLER": 2.95, "STORAGE JAR": 4.50, "CARAFE": 8.95, "TEALIGHT HOLDER": 1.25, "BUD VASE": 2.55, "CAKE DOME": 15.95},
    "paper": {"GIFT BAG": 0.85, "WRAPPING PAPER": 0.42, "NOTEBOOK": 2.10, "GREETING CARD": 0.65, "PAPER NAPKINS": 0.95,
              "PARTY BAGS": 1.25, "GIFT TAGS": 0.55},
}  # fmt: skip
"""Pounds for one piece."""

_SETS = {"MUG": 4, "EGG CUP": 6, "SIDE PLATE": 4, "TEA TOWEL": 3, "TUMBLER": 6, "TEALIGHT HOLDER": 3, "STORAGE JAR": 3}
_SET_DISCOUNT = 0.85
_FIRST_CODE = 20_611
_CODE_STEP = 7


class Article(NamedTuple):
    """An article; the price is a text, as in the file."""

    code: str
    description: str
    price: str

    @property
    def is_cheap(self) -> bool:
        return float(self.price) < 2


def articles(chance: random.Random) -> list[Article]:
    """Return the shop's articles, in the order in which they sell."""
    priced = []
    for material, things in _THINGS.items():
        for thing, price in things.items():
            for style in _STYLES[material]:
                own = price * chance.uniform(0.9, 1.15)
                priced.append((f"{style} {thing}", own))
                if thing in _SETS:
                    count = _SETS[thing]
                    priced.append((f"SET OF {count} {style} {thing}S", count * own * _SET_DISCOUNT))
    chance.shuffle(priced)
    return [
        Article(str(_FIRST_CODE + number * _CODE_STEP), description, f"{max(1, round(price * 20)) / 20:.2f}")
        for number, (description, price) in enumerate(priced)
    ]
