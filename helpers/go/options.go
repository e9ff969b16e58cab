package skiff

import "io"

// Option says what a control plane is to have.
type Option func(*settings)

type settings struct {
	arguments   []string
	environment []string
	output      io.Writer
	ownProcess  bool
}

func settingsOf(options []Option) *settings {
	settings := &settings{}
	for _, option := range options {
		option(settings)
	}
	return settings
}

// CRDs are files or folders with definitions, which are served before the control plane is ready.
func CRDs(paths ...string) Option {
	return func(s *settings) {
		for _, path := range paths {
			s.arguments = append(s.arguments, "--crds", path)
		}
	}
}

// Arguments are further ones of `skiff serve`.
func Arguments(arguments ...string) Option {
	return func(s *settings) { s.arguments = append(s.arguments, arguments...) }
}

// Variables are environment variables for the server, as in NAME=value.
func Variables(variables ...string) Option {
	return func(s *settings) { s.environment = append(s.environment, variables...) }
}

// OwnProcess has the test start a server of its own, where it would get a copy in one that tests share.
func OwnProcess() Option {
	return func(s *settings) { s.ownProcess = true }
}

// Output is where what the server says is copied to as it comes. The server is the test's own.
func Output(output io.Writer) Option {
	return func(s *settings) { s.output = output }
}
