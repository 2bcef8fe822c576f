"""Other packages' modules on this library. Nothing here is used unless a program imports it."""
