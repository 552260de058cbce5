package core

// Watching reports whether the machine wants hints.
func (m *Machine) Watching() bool { return m.watching }
