package lifecycle

import (
	"slices"
	"strings"

	"github.com/asynkron/protoactor-go/actor"
)

// OnHosted registers what, which describes what a component has at members that were dropped, or
// last had there: "11 shards of cart". It returns "" if that is nothing, and must not block.
func OnHosted(system *actor.ActorSystem, what func(addresses []string) string) {
	h := Of(system)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.mu.hosted = append(h.mu.hosted, what)
}

// Hosted describes what the components have at the members with these addresses.
func (h *Hooks) Hosted(addresses []string) string {
	h.mu.Lock()
	hosted := slices.Clip(h.mu.hosted)
	h.mu.Unlock()
	var all []string
	for _, what := range hosted {
		if s := what(addresses); s != "" {
			all = append(all, s)
		}
	}
	return strings.Join(all, ", ")
}
