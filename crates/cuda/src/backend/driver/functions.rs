//! The functions of the driver that are used, as its documentation declares them.

use core::ffi::{CStr, c_char, c_int, c_uint, c_void};
use core::ptr::null;

use crate::error::Failure;

/// A context, stream, event, module or function: opaque.
pub(super) type Handle = *mut c_void;

macro_rules! functions {
    ($($field:ident $name:literal ($($argument:ty),*);)*) => {
        /// The driver's functions, all there. Result codes are the numbers of `CUresult`; a device is a `CUdevice`.
        pub(super) struct Functions {
            $(pub(super) $field: unsafe extern "C" fn($($argument),*) -> u32,)*
        }

        impl Functions {
            /// Looks all of them up.
            ///
            /// The error names the first that the library lacks.
            pub(super) fn load(find: impl Fn(&[u8]) -> Option<*const c_void>) -> Result<Functions, String> {
                Ok(Functions {
                    $($field: {
                        let address = find(concat!($name, "\0").as_bytes())
                            .filter(|address| !address.is_null())
                            .ok_or_else(|| format!("the driver is too old: its library lacks {}", $name))?;
                        // SAFETY: the driver's documentation gives the function of this name this type.
                        unsafe {
                            core::mem::transmute::<*const c_void, unsafe extern "C" fn($($argument),*) -> u32>(address)
                        }
                    },)*
                })
            }
        }
    };
}

functions! {
    init "cuInit" (c_uint);
    driver_version "cuDriverGetVersion" (*mut c_int);
    error_name "cuGetErrorName" (u32, *mut *const c_char);
    error_string "cuGetErrorString" (u32, *mut *const c_char);
    device_count "cuDeviceGetCount" (*mut c_int);
    device "cuDeviceGet" (*mut c_int, c_int);
    device_name "cuDeviceGetName" (*mut c_char, c_int, c_int);
    device_attribute "cuDeviceGetAttribute" (*mut c_int, c_int, c_int);
    device_memory "cuDeviceTotalMem_v2" (*mut usize, c_int);
    context_retain "cuDevicePrimaryCtxRetain" (*mut Handle, c_int);
    context_release "cuDevicePrimaryCtxRelease_v2" (c_int);
    context_set "cuCtxSetCurrent" (Handle);
    context_finish "cuCtxSynchronize" ();
    context_limit "cuCtxSetLimit" (c_uint, usize);
    memory_info "cuMemGetInfo_v2" (*mut usize, *mut usize);
    allocate "cuMemAlloc_v2" (*mut u64, usize);
    free "cuMemFree_v2" (u64);
    pin "cuMemHostAlloc" (*mut *mut c_void, usize, c_uint);
    unpin "cuMemFreeHost" (*mut c_void);
    memory_set "cuMemsetD8_v2" (u64, u8, usize);
    memory_set_in "cuMemsetD8Async" (u64, u8, usize, Handle);
    upload "cuMemcpyHtoDAsync_v2" (u64, *const c_void, usize, Handle);
    download "cuMemcpyDtoHAsync_v2" (*mut c_void, u64, usize, Handle);
    copy "cuMemcpyDtoDAsync_v2" (u64, u64, usize, Handle);
    module_load "cuModuleLoadData" (*mut Handle, *const c_void);
    module_unload "cuModuleUnload" (Handle);
    module_function "cuModuleGetFunction" (*mut Handle, Handle, *const c_char);
    function_attribute "cuFuncGetAttribute" (*mut c_int, c_int, Handle);
    function_set "cuFuncSetAttribute" (Handle, c_int, c_int);
    occupancy "cuOccupancyMaxActiveBlocksPerMultiprocessor" (*mut c_int, Handle, c_int, usize);
    launch "cuLaunchKernel" (
        Handle, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, Handle, *mut *mut c_void, *mut *mut c_void
    );
    stream_open "cuStreamCreate" (*mut Handle, c_uint);
    stream_close "cuStreamDestroy_v2" (Handle);
    stream_finish "cuStreamSynchronize" (Handle);
    stream_wait "cuStreamWaitEvent" (Handle, Handle, c_uint);
    event_open "cuEventCreate" (*mut Handle, c_uint);
    event_close "cuEventDestroy_v2" (Handle);
    event_record "cuEventRecord" (Handle, Handle);
    event_wait "cuEventSynchronize" (Handle);
    event_query "cuEventQuery" (Handle);
    event_elapsed "cuEventElapsedTime" (*mut f32, Handle, Handle);
}

impl Functions {
    /// A failure in words, the driver's own if it has some for the code.
    pub(super) fn failure(&self, call: &'static str, code: u32) -> Failure {
        let word = |ask: unsafe extern "C" fn(u32, *mut *const c_char) -> u32| {
            let mut text: *const c_char = null();
            // SAFETY: it writes one address, of a constant text that ends in a zero byte, or null.
            let found = unsafe { ask(code, &raw mut text) };
            if found != 0 || text.is_null() {
                return None;
            }
            // SAFETY: as above.
            Some(unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
        };
        Failure {
            call,
            code,
            name: word(self.error_name).unwrap_or_else(|| "a code unknown to the driver".to_owned()),
            text: word(self.error_string).unwrap_or_else(|| "no further description".to_owned()),
        }
    }

    pub(super) fn checked(&self, call: &'static str, code: u32) -> Result<(), Failure> {
        if code == 0 { Ok(()) } else { Err(self.failure(call, code)) }
    }
}
