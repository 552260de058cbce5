package coordination

import "github.com/concord-go/concord/coordination/internal/core"

// Forget removes the name from the memory of the session, and reports whether it did. A process
// that keeps using new names needs it. Forget returns false while the lease is held, waited for or
// observed, and while the store has not answered a pending write; call it again later, or keep the
// name. A forgotten name can be used again, through this Lease or a new one.
func (l *Lease) Forget() bool {
	if l == nil || l.s == nil {
		return false
	}
	done := make(chan bool, 1)
	return l.s.send(message{do: func(lp *loop) { done <- lp.forget(l) }}) && <-done
}

func (l *loop) forget(of *Lease) bool {
	d := l.names[of.name]
	if d != nil {
		m, ok := d.machine.(*core.Machine)
		if !ok || d.looks > 0 || len(d.replies) > 0 || !m.Forget() {
			return false
		}
		last := l.leases[len(l.leases)-1]
		l.leases[d.index], last.index = last, d.index
		l.leases[len(l.leases)-1] = nil
		l.leases = l.leases[:len(l.leases)-1]
		delete(l.names, of.name)
		d.loop, d.machine = nil, l.s.machine(of.name)
	}
	l.s.mu.Lock()
	defer l.s.mu.Unlock()
	delete(l.s.mu.leases, of.name)
	return true
}
