package skiff

import (
	"fmt"
	"os"
	"sync"
)

// servers are those that tests share.
var servers shared

// shared has a server for each set of options. They end with this process.
type shared struct {
	mutex sync.Mutex
	begun map[string]func() (*ControlPlane, error)
}

// get is the server with these settings, which is started by whoever asks first.
func (s *shared) get(settings *settings) (*ControlPlane, error) {
	// Paths are seen from the folder, and tests may change that.
	folder, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	key := fmt.Sprintf("%q", [][]string{{folder, os.Getenv("SKIFF")}, settings.arguments, settings.environment})
	s.mutex.Lock()
	begin, found := s.begun[key]
	if !found {
		if s.begun == nil {
			s.begun = map[string]func() (*ControlPlane, error){}
		}
		begin = sync.OnceValues(func() (*ControlPlane, error) { return start(settings) })
		s.begun[key] = begin
	}
	s.mutex.Unlock()
	return begin()
}
