package coordination

// Opened adapts the results of a store's constructor to those of an Opener's function: with an
// error it returns a nil Store, also where store is a nil pointer.
func Opened[S Store](store S, err error) (Store, error) {
	if err != nil {
		return nil, err
	}
	return store, nil
}
