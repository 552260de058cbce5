package core

// Waiters returns how many callers of Acquire wait for the lease.
func (m *Machine) Waiters() int { return len(m.waiters) }

// Seen returns the record that was read last, and the largest token ever seen.
func (m *Machine) Seen() (r Record, high Token) { return m.seen.record, m.high }
