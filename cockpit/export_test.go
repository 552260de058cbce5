package cockpit

// OnPicture sets a function that the handler calls for each snapshot. Call it before the first
// request.
func (h *Handler) OnPicture(f func()) { h.pictures = f }
