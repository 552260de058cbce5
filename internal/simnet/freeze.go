package simnet

import "github.com/asynkron/protoactor-go/actor"

// Freeze holds what system sends from now on, and what arrives for it, until Thaw. Its goroutines run on:
// no process can be stopped from inside.
func (n *Net) Freeze(system *actor.ActorSystem) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if h := n.hostLocked(system); h != nil {
		h.frozen = true
	}
}

// Thaw ends Freeze: what was held is sent and delivered, in the order in which it came.
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

// waitAtDoor keeps what arrives at a frozen host; it reports whether the host is frozen.
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

// hold keeps what a frozen host sends; it reports whether it is frozen.
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
