package distributeddata

// Reach makes the replica, which starts later, call f in the middle of its steps.
func (r *Replicator) Reach(f func(place string)) { r.reach = f }
