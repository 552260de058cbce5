package simnet

import "github.com/asynkron/protoactor-go/actor"

// Freeze holds messages from and to system until Thaw. Its goroutines continue to run, since a
// process cannot be stopped from inside.
func (n *Net) Freeze(system *actor.ActorSystem) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if h := n.hostLocked(system); h != nil {
		h.frozen = true
	}
}

// Thaw ends Freeze: it sends and delivers the held messages, in order of arrival.
func (n *Net) Thaw(system *actor.ActorSystem) {
	for {
		n.mu.Lock()
		h := n.hostLocked(system)
		if h == nil || len(h.held) == 0 {
			if h != nil {
				h.frozen = false
			}
			n.mu.Unlock()
			return
		}
		first := h.held[0]
		h.held = h.held[1:]
		n.mu.Unlock()
		first()
	}
}

// waitAtDoor holds a message to a frozen host, and reports whether the host is frozen.
func (n *Net) waitAtDoor(address string, deliver func()) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	h := n.mu.hosts[address]
	if h == nil || !h.frozen {
		return false
	}
	h.held = append(h.held, deliver)
	return true
}

// hold holds a message from a frozen host, and reports whether the host is frozen.
func (n *Net) hold(h *host, send func()) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !h.frozen || h.down {
		return false
	}
	h.held = append(h.held, send)
	return true
}

func (n *Net) hostLocked(system *actor.ActorSystem) *host {
	for _, h := range n.mu.hosts {
		if h.system == system {
			return h
		}
	}
	return nil
}
