package expiry

// Len returns the number of entries.
func (t *Table) Len() int { return len(t.index) }
