# SPDX-License-Identifier: Apache-2.0
# agentctl build with the real npm, pnpm, yarn and uv, each with a lock file of one small
# package, and with the Node of a Python package. Skipped without a package registry.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use AgentTest::Env qw(build_dir is_counted is_sanitized root write_file);
use AgentTest::Packages qw(install_once);
use CtlTest qw($top as_owner folder link_tools own);
use File::Copy qw(copy);
use File::Path qw(make_path remove_tree);
use Test::More;

plan skip_all => 'package managers are the same in every build' if is_sanitized() || is_counted();
my $PYTHON = '/usr/bin/python3';
plan skip_all => "$PYTHON has no venv" if system("$PYTHON -c 'import ensurepip, venv' >/dev/null 2>&1");
qx(npm --fetch-retries=0 view is-number\@7.0.0 version 2>/dev/null) =~ /^7\.0\.0$/m
    or plan skip_all => 'no registry of npm answers';

# uv, and the wheel of Node, which are the same for all tests.
sub packages {
    my ($uv, $node) = (root() . '/t/ctl/managers.txt', root() . '/mod_agent/runners/node/node.txt');
    return install_once(root() . '/.build/managers', [ $uv, $node ], sub {
        my ($folder) = @_;
        my $pip = "'$folder/pip/bin/python' -m pip --quiet --disable-pip-version-check";
        my $only = '--no-deps --require-hashes --only-binary :all:';
        my $output = qx({ $PYTHON -m venv '$folder/pip' && $pip install $only --target '$folder/uv' -r '$uv' &&
            $pip download $only --dest '$folder/wheels' -r '$node'; } 2>&1);
        $? == 0 or plan skip_all => "no registry of PyPI answers: $output";
    });
}

# For the user who builds, who may not be able to enter the checkout.
my $packages = packages();
make_path(map { "$top/$_" } qw(cache bin));
system('cp', '-R', "$packages/wheels", "$packages/uv/bin/uv", build_dir() . '/agentctl', $top) == 0 or die "cp failed\n";
copy(root() . '/mod_agent/runners/node/node.txt', "$top/runners/node/node.txt") or die "node.txt: $!\n";
rename "$top/uv", "$top/bin/uv" or die "uv: $!\n";
# Runners that need the package.
write_file("$top/runners/node/main.mjs", <<'JS');
import { createRequire } from 'node:module';
const isNumber = createRequire(`${process.cwd()}/package.json`)('is-number');
const version = createRequire(`${process.cwd()}/package.json`)('is-number/package.json').version;
console.log(JSON.stringify({ type: 'ready', graphs: { g: { description: `${isNumber(5)} ${version} ${process.version}` } } }));
JS
write_file("$top/runners/python/__main__.py", <<'PY');
import importlib.metadata, json
print(json.dumps({"type": "ready", "graphs": {"g": {"description": importlib.metadata.version("iniconfig")}}}))
PY
# The tools of the machine, without its Node and npm.
link_tools(qw(sh env mkdir cp cmp));
own("$top/cache");
my %cache = map { $_->[0] => "$top/cache/$_->[1]" }
    [qw(npm_config_cache npm)], [qw(YARN_CACHE_FOLDER yarn)], [qw(UV_CACHE_DIR uv)], [qw(npm_config_store_dir pnpm)];

# As the user who builds, in a folder, with this PATH.
sub run {
    my ($folder, $path, $command) = @_;
    my $variables = join ' ', map { "$_='$cache{$_}'" } sort keys %cache;
    my $output = qx(cd '$folder' && @{[as_owner()]} /usr/bin/env HOME='$top/cache' PATH='$path' $variables PIP_NO_INDEX=1 PIP_FIND_LINKS='$top/wheels' $command 2>&1);
    return { status => $? >> 8, output => $output };
}

chomp(my $node = qx(node -p process.execPath));
my $machine = $node =~ s{/[^/]+\z}{}r . ':/usr/local/bin:/usr/bin:/bin';
my %json = ('langgraph.json' => '{"graphs":{"g":"./g.mjs:graph"}}');
sub package_of { my ($version) = @_; return qq({"name":"a","version":"1.0.0","dependencies":{"is-number":"$version"}}\n) }

for my $manager (
    [ npm => 'package-lock.json', 'npm install --package-lock-only --no-audit --no-fund' ],
    [ pnpm => 'pnpm-lock.yaml', 'npx --yes pnpm@10.34.8 install --lockfile-only' ],
    [ yarn => 'yarn.lock', 'npx --yes yarn@1.22.22 install --non-interactive --ignore-scripts' ],
) {
    my ($name, $lock, $command) = @{$manager};
    my $folder = folder(%json, 'package.json' => package_of('6.0.0'));
    my $made = run($folder, $machine, $command);
    ok -s "$folder/$lock", "$name: it writes a lock file" or diag $made->{output};
    remove_tree("$folder/node_modules");
    # npm once with the Node of the package, and no other.
    my ($path, $expected) = $name eq 'npm' ? ("$top/tools", qr/v24\.\d+\.\d+/) : ($machine, qr/v\d+\.\d+\.\d+/);
    my $built = run($folder, $path, "'$top/agentctl' build --runners '$top/runners' --python $PYTHON .");
    is $built->{status}, 0, "$name: the application is built" or diag $built->{output};
    like $built->{output}, qr/ by \Q$lock\E$/m, "$name: by its lock file";
    like $built->{output}, qr/^graph g \(\S+\): true 6\.0\.0 $expected$/m, "$name: the graph finds the package";
    if ($name eq 'pnpm') {
        # Another pnpm, which no registry has, and another program.
        for my $manager (qw(pnpm@9.999.999 yarn@4.5.0)) {
            write_file("$folder/package.json", package_of('6.0.0') =~ s/\{/{"packageManager":"$manager",/r);
            remove_tree("$folder/node_modules");
            my $kept = run($folder, $path, "'$top/agentctl' build --runners '$top/runners' .");
            is $kept->{status}, 0, "pnpm: with the packageManager $manager the pinned version installs" or diag $kept->{output};
        }
    }
    write_file("$folder/package.json", package_of('7.0.0'));
    my $changed = run($folder, $machine, "'$top/agentctl' build --runners '$top/runners' .");
    is $changed->{status}, 1, "$name: a package.json that the lock file does not have is an error" or diag $changed->{output};
    like $changed->{output}, qr/^agentctl: the packages could not be installed$/m, "$name: the message says so";
}

my $free = folder(%json, 'package.json' => package_of('7.0.0'));
my $built = run($free, $machine, "'$top/agentctl' build --runners '$top/runners' .");
like $built->{output}, qr/^agentctl: warning: there is no lock file/m, 'npm: without a lock file it warns';
like $built->{output}, qr/^graph g \(\S+\): true 7\.0\.0/m, 'npm: without a lock file it installs the versions of package.json';
ok !-e "$free/package-lock.json", 'npm: it writes no lock file';

my $project = qq([project]\nname = "a"\nversion = "1"\nrequires-python = ">=3.10"\ndependencies = ["iniconfig%s"]\n[tool.uv]\npackage = false\n);
my $folder = folder('langgraph.json' => '{"graphs":{"g":"./g.py:graph"},"source":{"kind":"uv"}}', 'pyproject.toml' => sprintf $project, '==2.0.0');
my $locked = run($folder, "$top/bin:/usr/bin:/bin", 'uv lock -q');
ok -s "$folder/uv.lock", 'uv: it writes a lock file' or diag $locked->{output};
write_file("$folder/pyproject.toml", sprintf $project, '>=1');
$built = run($folder, "$top/bin:/usr/bin:/bin", "'$top/agentctl' build --runners '$top/runners' --python $PYTHON .");
is $built->{status}, 0, 'uv: the application is built' or diag $built->{output};
like $built->{output}, qr/^==> Installing the project \. by its uv\.lock$/m, 'uv: by its lock file';
like $built->{output}, qr/^graph g \(\S+\): 2\.0\.0$/m, 'uv: the versions are those of the lock file';
my $both = folder('langgraph.json' => '{"graphs":{"g":"./g.py:graph"},"dependencies":["./plain"]}');
make_path("$both/plain");
write_file("$both/plain/requirements.txt", "iniconfig==2.0.0\n");
$built = run($both, "$top/bin:/usr/bin:/bin", "'$top/agentctl' build --runners '$top/runners' --python $PYTHON .");
like $built->{output}, qr/^==> Installing the dependencies with uv$/m, 'uv: it installs dependencies too';
like $built->{output}, qr/^graph g \(\S+\): 2\.0\.0$/m, 'uv: those of a requirements.txt';

done_testing;
