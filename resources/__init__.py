"""Data that the window shows: icons, themes, translations, lessons, screenshots."""
