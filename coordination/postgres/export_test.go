package postgres

// Settings are the settings of Opener.
type Settings = options
