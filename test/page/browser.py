"""Headless Chromium, driven over the WebDriver protocol (w3.org/TR/webdriver2)."""

import base64
import json
import pathlib
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

ARGUMENTS = [
    '--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run',
    '--disable-background-networking', '--disable-component-update', '--disable-sync',
    '--disable-dev-shm-usage', '--hide-scrollbars',
]


class Browser:
    """One browser with a profile of its own, gone at the end of the `with`."""

    def __init__(self, width=1280, height=900):
        self.size = (width, height)

    def __enter__(self):
        self.profile = tempfile.TemporaryDirectory()
        try:
            self.driver = subprocess.Popen(['chromedriver', '--port=0'], stdin=subprocess.DEVNULL,
                                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        except FileNotFoundError as error:
            raise RuntimeError('chromedriver is missing: tools/setup installs it') from error
        try:
            self.base = self._address()
            width, height = self.size
            options = {'args': [*ARGUMENTS, f'--user-data-dir={self.profile.name}',
                                f'--window-size={width},{height}']}
            capabilities = {'browserName': 'chrome', 'goog:chromeOptions': options,
                            'goog:loggingPrefs': {'browser': 'ALL', 'performance': 'ALL'}}
            session = self._send('POST', '/session', {'capabilities': {'alwaysMatch': capabilities}})
            self.base += f"/session/{session['sessionId']}"
        except Exception:
            self._end_driver()
            raise
        return self

    def __exit__(self, *_):
        try:
            self._send('DELETE', '')
        finally:
            self._end_driver()

    def _end_driver(self):
        self.driver.terminate()
        self.driver.wait()
        self.driver.stdout.close()
        self.profile.cleanup()

    def _address(self):
        """chromedriver tells its port in a line once it listens."""
        lines = []
        for line in self.driver.stdout:
            lines.append(line)
            if 'started successfully on port' in line:
                return f"http://127.0.0.1:{line.rsplit(' ', 1)[1].strip().rstrip('.')}"
        raise RuntimeError(f"chromedriver did not start: {''.join(lines)}")

    def _send(self, method, path, body=None):
        data = None if method != 'POST' else json.dumps(body or {}).encode()
        request = urllib.request.Request(self.base + path, data=data, method=method,
                                         headers={'Content-Type': 'application/json'})
        # Whatever the environment says of proxies, this stays on the machine.
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(request, timeout=60) as response:
                return json.load(response)['value']
        except urllib.error.HTTPError as error:
            raise RuntimeError(f'{method} {path}: {error.read().decode()}') from error

    def open(self, path, fragment=''):
        # To the address it is at, but for the fragment, a browser goes without loading anything.
        self._send('POST', '/url', {'url': 'about:blank'})
        self._send('POST', '/url', {'url': pathlib.Path(path).resolve().as_uri() + fragment})

    def run(self, script, *arguments):
        """What the body of a function returns in the page."""
        return self._send('POST', '/execute/sync', {'script': script, 'args': arguments})

    def wait(self, script, *arguments, seconds=15):
        """Runs the script until what it returns is true, and returns that. A hang detector only."""
        end = time.monotonic() + seconds
        while True:
            value = self.run(script, *arguments)
            if value:
                return value
            if time.monotonic() > end:
                raise RuntimeError(f'still not true after {seconds} s: {script}')
            time.sleep(0.02)

    def log(self, kind='browser'):
        """What the console, or ('performance') the events of the network, have to say since last
        asked."""
        return self._send('POST', '/se/log', {'type': kind})

    def devtools(self, command, **parameters):
        return self._send('POST', '/goog/cdp/execute', {'cmd': command, 'params': parameters})

    def resize(self, width, height, scale=1):
        self.devtools('Emulation.setDeviceMetricsOverride', width=width, height=height,
                      deviceScaleFactor=scale, mobile=False)

    def prefer(self, scheme):
        """'dark' or 'light', as the system would."""
        self.devtools('Emulation.setEmulatedMedia',
                      features=[{'name': 'prefers-color-scheme', 'value': scheme}])

    def press(self, *keys):
        """Presses keys one after the other; names as in the protocol, e.g. '\\ue004' for Tab."""
        actions = [{'type': kind, 'value': key} for key in keys for kind in ('keyDown', 'keyUp')]
        self._send('POST', '/actions', {'actions': [{'type': 'key', 'id': 'keys', 'actions': actions}]})

    def screenshot(self, path):
        """A PNG of what the window shows."""
        data = self.devtools('Page.captureScreenshot', format='png')['data']
        pathlib.Path(path).write_bytes(base64.b64decode(data))

    def print_pdf(self, path):
        data = self._send('POST', '/print', {'background': True, 'page': {'width': 21.0, 'height': 29.7}})
        pathlib.Path(path).write_bytes(base64.b64decode(data))
