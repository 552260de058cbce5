package causal

import "fmt"

// CheckAtom returns an error unless the mutators of some value can make the atom. It accepts kinds
// unknown to this version, which belong to a later one.
func CheckAtom(path string, l Leaf) error {
	rest := path
	for depth := 0; rest != "" && Tag(rest[0]).Kind().Holds(); depth++ {
		if depth == MaxDepth {
			return fmt.Errorf("%w: values nested deeper than %d", ErrTooLarge, MaxDepth)
		}
		end := keyEnd(rest, 1)
		if end < 0 {
			return fmt.Errorf("%w: key of a map", ErrMalformed)
		}
		rest = rest[end:]
	}
	if rest == "" || l.Replica == 0 || l.N == 0 || !checkEnd(rest, path, l) {
		return fmt.Errorf("%w: atom", ErrMalformed)
	}
	return nil
}

// checkEnd checks the payload and the part of the path after all maps.
func checkEnd(rest, path string, l Leaf) bool {
	switch t := Tag(rest[0]); t.Kind() {
	case GCounter, PNCounter:
		owner, slot := SlotOwner(path)
		total, err := ParseTotal(l.Payload)
		return slot && owner == l.Replica && t.Class() == Custom && err == nil &&
			0 < total.Since && total.Since <= l.N && (t.Kind() == PNCounter || total.Minus == 0)
	case Bounded:
		owner, slot := SlotOwner(path)
		total, err := ParseTotal(l.Payload)
		return slot && owner == l.Replica && t.Class() == Custom && err == nil &&
			0 < total.Since && total.Since <= l.N && (rest[1:9] == rest[9:] || total.Minus == 0)
	case GSet, ORSet:
		return l.Payload == ""
	case EWFlag:
		return len(rest) == 1 && l.Payload == ""
	case RWSet:
		return l.Payload == "" || l.Payload == Gone
	case DWFlag:
		return len(rest) == 1 && (l.Payload == "" || l.Payload == Gone)
	case LWWRegister:
		return len(rest) == 1 && len(l.Payload) >= 8
	case MVRegister, Extreme, Own:
		return len(rest) == 1
	case Tombstone:
		return t.Class() != lastUse || rest == path && len(rest) == 1 && len(l.Payload) <= MaxUse
	}
	return true
}
