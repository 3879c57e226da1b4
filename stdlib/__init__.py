"""The language's own library: `.stm` files, named `std:...` where a spec is asked for and `std....` in a `use`."""
