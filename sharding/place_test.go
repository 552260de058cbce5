package sharding

import "testing"

// A peer with a different number of shards cannot start a second worker in a shard.
func TestPlace_OfAWorkerHasNoOtherEntity(t *testing.T) {
	p := &place{life: &life{cfg: Config{numbered: true}}, n: 3}
	for id, strange := range map[string]bool{"3": false, "7": true, "03": true, "": true} {
		if p.strange(id) != strange {
			t.Errorf("%q: %v", id, !strange)
		}
	}
	p.life.cfg.numbered = false
	if p.strange("7") {
		t.Error("an entity is strange")
	}
}
