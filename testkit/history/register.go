package history

import "fmt"

// RegisterKind is the kind of an operation on a register.
type RegisterKind uint8

// The operations of a register.
const (
	Read  RegisterKind = iota
	Write              // replace any value
	Swap               // replace Old
)

// RegisterOp is an operation on one key. The empty string is the value of a key that was never
// written.
type RegisterOp struct {
	Key   string
	Kind  RegisterKind
	Value string // Write, Swap
	Old   string // Swap
}

func (o RegisterOp) String() string {
	switch o.Kind {
	case Write:
		return fmt.Sprintf("%s := %s", o.Key, o.Value)
	case Swap:
		return fmt.Sprintf("%s: %s := %s", o.Key, o.Old, o.Value)
	}
	return "read " + o.Key
}

// RegisterResult is the answer.
type RegisterResult struct {
	Value   string // Read
	Swapped bool   // Swap
}

// Register is a store of independent registers with atomic reads, writes and conditional writes.
func Register() Model[string, RegisterOp, RegisterResult] {
	return Model[string, RegisterOp, RegisterResult]{
		Part: func(in RegisterOp) string { return in.Key },
		Step: stepRegister,
	}
}

func stepRegister(s string, in RegisterOp, out Outcome[RegisterResult]) []string {
	switch {
	case in.Kind == Read:
		return when(!out.Known || out.Value.Value == s, s)
	case in.Kind == Write && out.Known:
		return []string{in.Value}
	case in.Kind == Write:
		return []string{s, in.Value}
	case out.Known && out.Value.Swapped:
		return when(s == in.Old, in.Value)
	case out.Known:
		return when(s != in.Old, s)
	case s == in.Old:
		return []string{s, in.Value}
	}
	return []string{s}
}

// when returns the state if possible is true.
func when[S any](possible bool, next S) []S {
	if possible {
		return []S{next}
	}
	return nil
}
