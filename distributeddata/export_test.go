package distributeddata

// Reach has f called in the middle of the steps of the replica, which starts later.
func (r *Replicator) Reach(f func(place string)) { r.reach = f }
