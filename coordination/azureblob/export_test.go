package azureblob

// Settings are the settings of Opener.
type Settings = options
