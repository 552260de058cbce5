package causal

// ParseState is like ParseValue for a state that is more than one value: its vector need not cover
// the atoms.
func ParseState(src []byte) (s Store, seen Vector, err error) {
	s, seen, _, err = parseState(src)
	return s, seen, err
}
