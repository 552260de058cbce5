package coordination

// Opened returns what an Opener's function has to: a nil Store with an error, also where store is a nil pointer.
func Opened[S Store](store S, err error) (Store, error) {
	if err != nil {
		return nil, err
	}
	return store, nil
}
